// Owns the first steps: the walkthrough, and that it opens by itself once.
import * as vscode from "vscode";

const SEEN = "slipstream.walkthroughSeen";

export async function openWalkthrough(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openWalkthrough", "slipstream.slipstream#start", false);
}

/** Open it on the first start ever, unless the user wants no walkthroughs. */
export async function openFirstTime(memory: vscode.Memento): Promise<void> {
  if (memory.get<boolean>(SEEN, false)) {
    return;
  }
  await memory.update(SEEN, true);
  const isWanted = vscode.workspace.getConfiguration("workbench.welcomePage.walkthroughs").get<boolean>("openOnInstall", true);
  if (isWanted) {
    await openWalkthrough();
  }
}
