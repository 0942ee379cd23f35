import { parseDocuments, readTexts, renderProblem } from '../load/index.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import { convert } from '../examine/convert/index.ts'
import { command, CommandFailed } from './command.ts'
import type { CommandSpec } from './options/options.ts'
import { stdinFor } from './options/source-options.ts'

export const CONVERT_SPEC: CommandSpec = {
  name: 'extauth convert',
  summary: 'Converts ToolHive manifests; reports unsupported fields.',
  positionals: 'FILE|DIR…',
  completes: 'file',
  options: {},
  notes: [
    'Standard output has the documents, each with its changes as comments above it. In other documents, only the names',
    'of Services that a converted proxy replaces change. Standard error lists unsupported fields and how to replace',
    'them. Unsupported restrictions stay in the output, which is invalid until you remove them.',
    '- is standard input.',
    '',
    'Examples:',
    '  extauth convert manifests/ > proxy.yaml',
    '  kubectl get mcpremoteproxies,mcpexternalauthconfigs,mcpoidcconfigs,mcptoolconfigs -o yaml | extauth convert -',
    '',
    'Exit codes: 0 converted, 1 a restriction is unsupported, a file is unreadable, or there is no document,\n2 usage.',
  ].join('\n'),
}

export const runConvert = command(CONVERT_SPEC, async ({ options, io }) => {
  const paths = options.positionals
  if (paths.length === 0) throw new UsageError('needs a FILE or DIR. See extauth convert --help.')
  const { texts, problems } = await readTexts(paths, await stdinFor(paths, io))
  // Parsing enforces the size limits of documents.
  const unreadable = [...problems, ...parseDocuments(texts).problems.filter(({ kind }) => kind === '')]
  if (unreadable.length > 0) {
    for (const problem of unreadable) io.stderr(`${renderProblem(problem)}\n`)
    return EXIT.failed
  }
  const { output, refused } = convert(texts)
  // Most often the left side of a pipe has failed.
  if (output.trim() === '') throw new CommandFailed('the input contains no document.')
  io.stdout(output)
  const width = Math.max(0, ...refused.map(({ where }) => where.length))
  for (const { where, what } of refused) io.stderr(`${where.padEnd(width)}  ${what}\n`)
  return refused.length === 0 ? EXIT.fine : EXIT.failed
})
