import { Args, Command, Flags, loadHelpClass } from "@oclif/core";
import { BaseCommand, examples } from "../cli/base-command.ts";
import { shellWord } from "../domain/formats.ts";
import { programCommand } from "../runtime/process.ts";

/** Each asks `evreg complete` at every press of the key, so none grows old with the program. */
export const SCRIPTS = {
  bash: `# Completion of evreg's command lines for bash. In ~/.bashrc:
#   source <(evreg completion bash)
_evreg() {
  local found
  COMPREPLY=()
  while IFS= read -r found; do
    COMPREPLY+=("\${found%%$'\\t'*}")
  done < <("$1" complete words -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _evreg evreg
`,
  zsh: `#compdef evreg
# Completion of evreg's command lines for zsh. In ~/.zshrc, after compinit:
#   source <(evreg completion zsh)
# or as a file named _evreg in a folder of $fpath.
_evreg() {
  local found
  local -a candidates
  for found in "\${(@f)$("\${words[1]}" complete words -- "\${(@)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}"; do
    [[ -n $found ]] && candidates+=(\${found/$'\\t'/:})
  done
  if (( $#candidates )); then _describe evreg candidates; else _files; fi
}
if [[ \${funcstack[1]} == _evreg ]]; then _evreg "$@"; else compdef _evreg evreg; fi
`,
  fish: `# Completion of evreg's command lines for fish. In ~/.config/fish/config.fish:
#   evreg completion fish | source
function __evreg_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    set -q typed[1]; or set typed ''
    set -l found ($words[1] complete words -- $words[2..-1] $typed 2>/dev/null)
    if set -q found[1]
        printf '%s\\n' $found
    else
        __fish_complete_path $typed
    end
end
complete -c evreg -f -a '(__evreg_complete)'
`,
} as const;

type Shell = keyof typeof SCRIPTS;

/** Where no program is found by the name evreg, it becomes a function that starts this one. */
const FUNCTIONS: Readonly<Record<Shell, (start: string) => string>> = {
  bash: (start) => `type evreg >/dev/null 2>&1 || evreg() { ${start} "$@"; }\n`,
  zsh: (start) => `whence evreg >/dev/null || evreg() { ${start} "$@"; }\n`,
  fish: (start) => `if not type -q evreg\n    function evreg\n        ${start} $argv\n    end\nend\n`,
};

/** @param program the words that start this one */
export function completionScript(shell: Shell, program: readonly string[]): string {
  return SCRIPTS[shell] + FUNCTIONS[shell](program.map(shellWord).join(" "));
}

export class Completion extends BaseCommand {
  static override summary = "Print the script that completes evreg's command lines in a shell.";
  static override description =
    "It completes commands, flags and their values. The script asks the program evreg. Where none of that name is on the PATH, it makes a function of that name, which starts the program that printed it: so source <(PATH/TO/CHECKOUT/bin/run.js completion bash) in ~/.bashrc gives a checkout its short name, too. An alias completes nothing.";
  static override examples = examples({
    "bash, in ~/.bashrc": "source <(evreg completion bash)",
    "zsh, in ~/.zshrc after compinit": "source <(evreg completion zsh)",
    "fish, in ~/.config/fish/config.fish": "evreg completion fish | source",
  });
  static override args = {
    shell: Args.string({
      description: "bash, zsh or fish.",
      options: Object.keys(SCRIPTS),
      required: true,
      ignoreStdin: true,
    }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Completion);
    await this.outputFor(flags).plain(completionScript(args.shell as Shell, programCommand()));
  }
}

export class Help extends Command {
  static override usage = "help [COMMAND] [--nested-commands]";
  static override summary = "Show help for a command.";
  static override examples = ["evreg help actions create"];
  static override args = { command: Args.string({ description: "Command to show help for." }) };
  static override flags = {
    "nested-commands": Flags.boolean({ char: "n", summary: "Show the commands of all topics as well." }),
  };
  /** A command may have two words. */
  static override strict = false;

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Help);
    const words = argv.map(String);
    const HelpClass = await loadHelpClass(this.config);
    // `--help` has them so; oclif itself reads them there only.
    const { helpOptions } = this.config.pjson.oclif;
    const help = new HelpClass(this.config, { ...helpOptions, all: flags["nested-commands"] });
    const own = words[0] === Help.id ? this.config.findCommand(Help.id) : undefined;
    // oclif passes over the word help wherever it stands.
    if (own === undefined) await help.showHelp(words);
    else await help.showCommandHelp(own, []);
  }
}
