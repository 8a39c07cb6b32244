;;; slipstream.el --- Slipstream through eglot and completion-preview  -*- lexical-binding: t -*-

;; For the init file of Emacs 30 or newer. Needs the command `slipstream' and no other package.

(require 'eglot)

(defvar slipstream-modes
  '(python-mode python-ts-mode rust-ts-mode typescript-ts-mode)
  "Major modes that use Slipstream. Eglot runs one server for each mode.")

(add-to-list 'eglot-server-programs `(,slipstream-modes "slipstream" "serve" "--stdio"))

(dolist (mode slipstream-modes)
  (let ((hook (intern (format "%s-hook" mode))))
    (add-hook hook #'eglot-ensure)
    (add-hook hook #'completion-preview-mode)))

;; A suggestion may also begin after a dot or a parenthesis, where no word has been typed.
(setopt completion-preview-minimum-symbol-length nil)

;;; slipstream.el ends here
