import { printable } from '../core/index.ts'
import {
  CedarError,
  cedarToYaml,
  type Located,
  parseDocuments,
  type PolicySet,
  readTexts,
  renderProblem,
} from '../load/index.ts'
import { EXIT, UsageError } from '../compose/index.ts'
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
    'FILE has Cedar policies, or is a configuration of ToolHive with them: an authz.json or its YAML form, a manifest',
    'with an inline authzConfig, an MCPAuthzConfig, or a ConfigMap with an authz.json; - is standard input.',
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
  const loaded = parseDocuments([file])
  if (loaded.policies.length > 0) io.stdout(loaded.policies.map(convertSet).join('---\n'))
  else if (loaded.declared.length > 0 || loaded.skipped.some(({ kind }) => kind !== ''))
    throw new CommandFailed(`${file.path}: no Cedar policies in these documents; ${EXPECTED}`)
  else io.stdout(converted([file.text], ({ line, column, message }) => `${file.path}:${line}:${column}  ${message}`))
  return EXIT.fine
})

const EXPECTED = 'expected authzConfig of type "inline", an MCPAuthzConfig, or a ConfigMap with an authz.json'

/** The rules for the policies of one document. */
function convertSet(set: Located<PolicySet>): string {
  const { kind, name, path, found } = set.document
  if ('reason' in found)
    throw new CommandFailed(renderProblem(set.problem(path, `cannot be converted: ${found.reason}`)))
  const rules = converted(found.texts, ({ policy, line, column, message }) =>
    renderProblem(
      set.problem([...path, ...found.path, policy], `line ${line}, column ${column} of the policy: ${message}`),
    ),
  )
  return kind === '' ? rules : `# ${printable(`${kind}/${name}  ${path.join('.')}`)}\n${rules}`
}

/** Throws `CommandFailed` for a policy that cannot be expressed exactly. */
function converted(texts: readonly string[], at: (error: CedarError) => string): string {
  try {
    return cedarToYaml(texts)
  } catch (error) {
    if (!(error instanceof CedarError)) throw error
    throw new CommandFailed(at(error))
  }
}
