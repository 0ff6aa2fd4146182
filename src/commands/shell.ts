import { Args } from "@oclif/core";
import { BaseCommand, examples } from "../cli/base-command.ts";

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

export class Completion extends BaseCommand {
  static override summary = "Print the script that completes evreg's command lines in a shell.";
  static override description =
    "It completes commands, flags and their values. The script asks the program evreg, which must be on the PATH. An alias completes nothing.";
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
    await this.outputFor(flags).plain(SCRIPTS[args.shell as keyof typeof SCRIPTS]);
  }
}
