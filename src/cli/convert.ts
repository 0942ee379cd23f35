import { parseDocuments, readTexts, renderProblem } from '../load/index.ts'
import { EXIT, UsageError } from '../compose/index.ts'
import { convert } from '../examine/convert/index.ts'
import { command, CommandFailed } from './command.ts'
import type { CommandSpec } from './options/options.ts'
import { stdinFor } from './options/source-options.ts'

/** The table of its options. */
export const CONVERT_SPEC: CommandSpec = {
  name: 'extauth convert',
  summary: 'Rewrites manifests of ToolHive as documents of ours, and says what can not be kept.',
  positionals: 'FILE|DIR…',
  completes: 'file',
  options: {},
  notes: [
    'Standard output has the documents, each with what was changed as comments above it; in documents of others, only',
    'names of Services that a converted proxy replaces. Standard error has what ran before and is refused here, with',
    'what to do. What restricts is never left out: it stays in the output, which is refused until it is gone.',
    '- is standard input.',
    '',
    'Examples:',
    '  extauth convert manifests/ > proxy.yaml',
    '  kubectl get mcpremoteproxies,mcpexternalauthconfigs,mcpoidcconfigs,mcptelemetryconfigs -o yaml | extauth convert -',
    '',
    'Exit codes: 0 everything is kept, 1 something restricts and can not be kept, or can not be read,\nor there is no document, 2 usage.',
  ].join('\n'),
}

/** `extauth convert`: exit code 0 when everything is kept. */
export const runConvert = command(CONVERT_SPEC, async ({ options, io }) => {
  const paths = options.positionals
  if (paths.length === 0) throw new UsageError('Which files? See extauth convert --help.')
  const { texts, problems } = await readTexts(paths, await stdinFor(paths, io))
  // Who reads them first has bounds for what is in them.
  const unreadable = [...problems, ...parseDocuments(texts).problems.filter(({ kind }) => kind === '')]
  if (unreadable.length > 0) {
    for (const problem of unreadable) io.stderr(`${renderProblem(problem)}\n`)
    return EXIT.failed
  }
  const { output, refused } = convert(texts)
  // Most often the end of a pipe whose beginning has failed.
  if (output.trim() === '') throw new CommandFailed('these files hold no document.')
  io.stdout(output)
  const width = Math.max(0, ...refused.map(({ where }) => where.length))
  for (const { where, what } of refused) io.stderr(`${where.padEnd(width)}  ${what}\n`)
  return refused.length === 0 ? EXIT.fine : EXIT.failed
})
