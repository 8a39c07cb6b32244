// Owns the names of the extension's commands, below `slipstream`.

export const COMMANDS = [
  "menu",
  "enable",
  "disable",
  "toggleLanguage",
  "snooze",
  "resume",
  "trigger",
  "nextEdit",
  "allEdits",
  "dismissEdit",
  "why",
  "showStatistics",
  "restart",
  "openLog",
  "forgetIndex",
  "openWalkthrough",
  "removeEverything",
] as const;

export type CommandName = (typeof COMMANDS)[number];
