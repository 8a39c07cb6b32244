// Owns the walkthrough, which opens once by itself.
import * as vscode from "vscode";

const SEEN = "slipstream.walkthroughSeen";

export async function openWalkthrough(): Promise<void> {
  await vscode.commands.executeCommand("workbench.action.openWalkthrough", "slipstream.slipstream#start", false);
}

/** Open it on the first start, unless the user switched walkthroughs off. */
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
