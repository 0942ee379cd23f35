import { readTexts, renderProblem } from '../load/index.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import { CedarError, cedarToYaml } from '../examine/convert/index.ts'
import { command, CommandFailed } from './command.ts'
import type { CommandSpec } from './options/options.ts'
import { stdinFor } from './options/source-options.ts'

export const CONVERT_CEDAR_SPEC: CommandSpec = {
  name: 'extauth convert cedar',
  summary: 'Converts Cedar policies of ToolHive to `authorization` of a route.',
  positionals: 'FILE',
  completes: 'file',
  options: {},
  notes: [
    'FILE has Cedar policies (those of authzConfig.inline.policies, one after the other); - is standard input.',
    'Converted are policies for any principal, for an action and a named tool or prompt, with conditions on claims:',
    '  permit(principal, action == Action::"call_tool", resource == Tool::"search")',
    '  when { principal.claim_groups.contains("staff") && principal.claim_team == "a" };',
    'Anything else is refused with its line and column; then nothing is printed.',
    'As in ToolHive, a request is denied if a policy for it cannot be evaluated (a claim is missing), or without `sub`.',
    '',
    'Exit codes: 0 converted, 1 a policy cannot be expressed exactly or the file is unreadable, 2 usage.',
  ].join('\n'),
}

export const runConvertCedar = command(CONVERT_CEDAR_SPEC, async ({ options, io }) => {
  const paths = options.positionals
  if (paths.length !== 1) throw new UsageError('needs one FILE. See extauth convert cedar --help.')
  const { texts, problems } = await readTexts(paths, await stdinFor(paths, io))
  const [file] = texts
  if (problems.length > 0 || file === undefined || texts.length > 1)
    throw new CommandFailed(
      problems.map((problem) => renderProblem(problem)).join('\n') || `${paths[0] ?? ''}: expected one file`,
    )
  try {
    io.stdout(cedarToYaml(file.text))
    return EXIT.fine
  } catch (error) {
    if (!(error instanceof CedarError)) throw error
    throw new CommandFailed(`${file.path}:${error.line}:${error.column}  ${error.message}`)
  }
})
