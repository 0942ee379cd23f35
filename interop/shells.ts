import { COMMANDS } from '../src/cli/commands/index.ts'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { completedCommands } from '../src/cli/completion/completion.ts'
import { fishCompletion } from '../src/cli/completion/completion-fish.ts'
import { zshCompletion } from '../src/cli/completion/completion-zsh.ts'
import type { Peer } from './peers.ts'

const INSTALL_MS = 180_000

/** Typed text, and its completion at the Tab key: one word each if only one fits. */
const TYPED: readonly (readonly [typed: string, completed: string])[] = [
  ['extauth regi', 'extauth registry'],
  ['extauth lab tok', 'extauth lab token'],
  ['extauth proxy --ignore-m', 'extauth proxy --ignore-manifest-callers'],
  ['extauth lab token --alg ES', 'extauth lab token --alg ES256'],
  ['extauth proxy --log-format hu', 'extauth proxy --log-format human'],
  ['extauth schema Regis', 'extauth schema RegistryConfig'],
  ['extauth completion ba', 'extauth completion bash'],
  ['extauth proxy --config pro', 'extauth proxy --config proxy.yaml'],
  ['extauth validate pro', 'extauth validate proxy.yaml'],
]

/** A real zsh or fish that completes the command line of `extauth`; installed from Debian where that is allowed. */
export function shellPeer(shell: 'zsh' | 'fish', say: (line: string) => void): Peer {
  const isHere = () => spawnSync(shell, ['--version'], { stdio: 'ignore' }).status === 0
  const mayInstall = process.getuid?.() === 0 && spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0
  return {
    name: shell,
    missing() {
      if (isHere()) return undefined
      if (!mayInstall) return `it is not installed; as root, in Debian: apt-get install ${shell}`
      const { status } = spawnSync('apt-get', ['update', '-qq'], { stdio: 'ignore', timeout: INSTALL_MS })
      return status === 0 ? undefined : "Debian's packages can't be reached"
    },
    async run() {
      if (!isHere()) install(shell)
      const commands = await completedCommands(COMMANDS)
      const directory = mkdtempSync(path.join(tmpdir(), 'extauth-shell-'))
      try {
        writeFileSync(path.join(directory, 'proxy.yaml'), '')
        writeFileSync(
          path.join(directory, 'script'),
          shell === 'zsh' ? zshCompletion(commands) : fishCompletion(commands),
        )
        const wrong = TYPED.filter(([typed, completed]) => {
          const made = shell === 'zsh' ? inZsh(directory, typed) : inFish(directory, typed)
          if (made !== completed) say(`${shell} makes ${JSON.stringify(made)} of ${JSON.stringify(typed)}`)
          return made !== completed
        })
        say(`${shell} ran: ${TYPED.length - wrong.length} of ${TYPED.length} lines are completed as they should be`)
        return wrong.length === 0
      } finally {
        rmSync(directory, { recursive: true, force: true })
      }
    },
  }
}

function install(shell: string): void {
  const args = ['install', '-y', '-qq', '--no-install-recommends', shell]
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const { status } = spawnSync('apt-get', args, { stdio: 'ignore', timeout: INSTALL_MS, env })
  if (status !== 0) throw new Error(`apt-get ${args.join(' ')} did not work`)
}

function output(command: string, args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8', timeout: 60_000 })
  if (status !== 0) throw new Error(`${command} does not run: ${stderr.slice(-500)}`)
  return stdout
}

/** fish prints the candidates for the last word itself. */
function inFish(directory: string, typed: string): string {
  const candidates = output('fish', ['--no-config', '-c', 'source script; complete -C $argv[1]', typed], directory)
  const [first = '', ...more] = candidates.split('\n').filter((line) => line !== '')
  if (more.length > 0) return candidates
  return `${typed.slice(0, typed.lastIndexOf(' ') + 1)}${first.split('\t')[0] ?? ''}`
}

/** zsh completes in a terminal only: one of its own, in which Tab and Enter are pressed and `extauth` prints its arguments. */
function inZsh(directory: string, typed: string): string {
  const driver = `
    zmodload zsh/zpty
    zpty shell "TERM=dumb zsh -f -i"
    zpty -w shell 'PS1= ; unsetopt zle_bracketed_paste 2>/dev/null; autoload -U compinit; compinit -D -u; source ./script'
    zpty -w shell 'extauth() { print -r -- "<$*>" }; print READY'
    zpty -r shell line '*READY*READY*'
    zpty -n -w shell "$1"$'\\t\\n'
    zpty -r shell line '*<*>*'
    print -r -- "$line"
    zpty -d shell`
  const shown = output('zsh', ['-f', '-c', driver, 'driver', typed], directory)
  const typedArguments = /<([^<>]*)>\s*$/.exec(shown.trimEnd())?.[1]
  return typedArguments === undefined ? shown : `extauth ${typedArguments.trimEnd()}`
}
