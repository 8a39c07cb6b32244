// Owns the panel of the statistics page, and its messages.
import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { Server } from "./client";
import { parse, type ToPage } from "./statisticsPage";
import { document } from "./statisticsPage";
import type { Piece, Why } from "./protocol";
import { label, open, originOf } from "./provenance";
import type { StatsFeed } from "./statsFeed";
import type { Status } from "./status";
import { describe } from "./statusText";

export class Statistics implements vscode.Disposable {
  private readonly subscriptions: vscode.Disposable[];
  private panel: vscode.WebviewPanel | undefined;
  private pieces: readonly Piece[] = [];
  private idOfPieces: string | undefined;

  constructor(
    private readonly extension: vscode.Uri,
    private readonly server: Server,
    private readonly status: Status,
    private readonly feed: StatsFeed,
  ) {
    const draw = (): void => void this.draw();
    this.subscriptions = [feed.onDidChange(draw), server.onDidChange(draw)];
  }

  /** Open the page beside the code, or bring it to the front. */
  show(): void {
    if (this.panel !== undefined) {
      this.panel.reveal(undefined, true);
      return;
    }
    const panel = vscode.window.createWebviewPanel(
      "slipstream.statistics",
      "Slipstream Statistics",
      { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true },
      { enableScripts: true, enableFindWidget: true, localResourceRoots: ["out", "media"].map((name) => this.at(name)) },
    );
    this.panel = panel;
    panel.iconPath = this.at("media", "icon.png");
    panel.webview.onDidReceiveMessage((message: unknown) => this.take(message));
    panel.onDidChangeViewState(() => {
      this.feed.watch(panel.visible);
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
      this.feed.watch(false);
    });
    panel.webview.html = this.page(panel.webview);
    this.feed.watch(true);
  }

  dispose(): void {
    vscode.Disposable.from(...this.subscriptions).dispose();
    this.panel?.dispose();
  }

  private page(webview: vscode.Webview): string {
    return document({
      nonce: randomBytes(16).toString("base64url"),
      source: webview.cspSource,
      script: webview.asWebviewUri(this.at("out", "statistics.js")).toString(),
      style: webview.asWebviewUri(this.at("media", "statistics.css")).toString(),
    });
  }

  private async take(raw: unknown): Promise<void> {
    const message = parse(raw);
    if (message?.type === "ready") {
      await this.draw();
    } else if (message?.type === "open") {
      const piece = this.pieces[message.piece];
      const origin = piece && originOf(piece);
      if (origin) {
        await open(origin, vscode.ViewColumn.One);
      }
    }
  }

  private async draw(): Promise<void> {
    if (this.panel?.visible !== true) {
      return;
    }
    const stats = this.feed.latest;
    await this.readPieces(stats?.last?.id);
    const { sentence, isError } = describe(this.status.situation);
    const pieces = this.pieces.map((piece) => {
      const origin = originOf(piece);
      const { text, source, evidence } = piece;
      return { text, source, evidence, place: origin && label(origin) };
    });
    const state: ToPage = { type: "state", sentence, isError, stats, pieces };
    await this.panel.webview.postMessage(state);
  }

  /** Request the parts of the last suggestion, once for each. */
  private async readPieces(id: string | undefined): Promise<void> {
    if (id === this.idOfPieces) {
      return;
    }
    this.idOfPieces = id;
    const why = id === undefined ? undefined : await this.server.request<Why>("slipstream/why", { id });
    this.pieces = why?.pieces ?? [];
  }

  private at(...names: string[]): vscode.Uri {
    return vscode.Uri.joinPath(this.extension, ...names);
  }
}
