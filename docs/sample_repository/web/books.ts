/** The books of the desk, as the browser asks for them. */

import { request } from "./request";

export interface Book {
  id: number;
  title: string;
  author: string;
  isbn: string;
  year: number;
}

export type BookFields = Omit<Book, "id">;

export async function listBooks(): Promise<Book[]> {
  return request<Book[]>("GET", "/books");
}

export async function getBook(bookId: number): Promise<Book> {
  return request<Book>("GET", `/books/${bookId}`);
}

export async function createBook(fields: BookFields): Promise<Book> {
  return request<Book>("POST", "/books", fields);
}

export async function updateBook(bookId: number, fields: BookFields): Promise<Book> {
  return request<Book>("PUT", `/books/${bookId}`, fields);
}

export async function deleteBook(bookId: number): Promise<void> {
  return request<void>("DELETE", `/books/${bookId}`);
}
