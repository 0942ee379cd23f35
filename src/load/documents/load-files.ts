import { constants } from 'node:fs'
import { open, readdir, stat } from 'node:fs/promises'
import path from 'node:path'
import { denied, deniedClause } from '../../core/index.ts'
import { DOCUMENT_KINDS } from './document-kinds.ts'
import { nothingLoaded, type Loaded } from './loaded.ts'
import { parseDocuments, type ParseOptions, type SourceText } from './parse-documents.ts'
import { fileProblem, type Problem } from './problem.ts'
import { YAML_LIMITS } from '../yaml/yaml-limits.ts'

/** Maximum files of one configuration, and maximum bytes in total. */
const MAX_FILES = 1_000
const MAX_TOTAL_BYTES = 32 * 1024 * 1024

/** The path for standard input, and its name in problems. */
export const STDIN = '-'
const STDIN_NAME = '<stdin>'

/**
 * Reads files and directories (`-` is `stdin`, whose paths are relative to the working directory). Of a directory it
 * reads `.yaml`, `.yml` and `.json` files in name order, without hidden ones (Kubernetes' `..data`) and
 * subdirectories. Unreadable files are problems.
 */
export async function loadFiles(
  paths: readonly string[],
  { stdin, ...options }: ParseOptions & { readonly stdin?: string | undefined } = {},
): Promise<Loaded> {
  const { texts, problems } = await readTexts(paths, stdin)
  if (texts.length === 0) return { ...nothingLoaded(), problems }
  const loaded = parseDocuments(texts, options)
  return { ...loaded, problems: [...problems, ...loaded.problems] }
}

/** The same files and directories as unparsed texts. */
export async function readTexts(
  paths: readonly string[],
  stdin: string | undefined,
): Promise<{ readonly texts: readonly SourceText[]; readonly problems: readonly Problem[] }> {
  const problems: Problem[] = []
  const texts: SourceText[] = []
  let total = 0
  for (const file of await listFiles(paths, problems)) {
    const isStdin = file === STDIN && stdin !== undefined
    const text = isStdin ? bounded(stdin) : await readText(file)
    if (typeof text !== 'string') problems.push(text)
    else {
      total += text.length
      if (texts.length >= MAX_FILES || total > MAX_TOTAL_BYTES) {
        problems.push(
          fileProblem(file, `too much configuration, expected at most ${MAX_FILES} files and ${MAX_TOTAL_BYTES} bytes`),
        )
        break
      }
      texts.push({ path: isStdin ? STDIN_NAME : file, text })
    }
  }
  return { texts, problems }
}

/** Approximate total size in bytes according to the file system; inaccessible paths count 0. */
export async function bytesOf(paths: readonly string[]): Promise<number> {
  const files = await listFiles(paths, [])
  const sizes = await Promise.all(files.map((file) => stat(file).then(({ size }) => size, noBytes)))
  return sizes.reduce((sum, size) => sum + size, 0)
}

const noBytes = (): number => 0

const bounded = (text: string): string | Problem =>
  Buffer.byteLength(text) <= YAML_LIMITS.bytes ? text : fileProblem(STDIN_NAME, tooLarge(Buffer.byteLength(text)))

const tooLarge = (bytes: number): string =>
  `the file is too large: ${bytes} bytes, expected at most ${YAML_LIMITS.bytes}; split it into several files`

/** Whether a file of a directory of `--config` is read, by its name. */
export const isConfigurationFile = (name: string): boolean => /\.(ya?ml|json)$/i.test(name) && !name.startsWith('.')

async function listFiles(paths: readonly string[], problems: Problem[]): Promise<string[]> {
  const files: string[] = []
  for (const name of paths) {
    try {
      if (name === STDIN || !(await stat(name)).isDirectory()) files.push(name)
      else {
        const found = (await readdir(name)).filter(isConfigurationFile)
        if (found.length === 0)
          problems.push(
            fileProblem(
              name,
              `no file in this directory ends in .yaml, .yml or .json; supported kinds: ${DOCUMENT_KINDS.join(', ')}`,
            ),
          )
        files.push(...found.sort().map((entry) => path.join(name, entry)))
      }
    } catch (error) {
      problems.push(unreadable(name, error))
    }
  }
  return [...new Set(files)]
}

/** The text of one file: UTF-8 of at most `YAML_LIMITS.bytes`, or the problem with it. */
export async function readText(file: string): Promise<string | Problem> {
  try {
    // A pipe may never be written to; it is rejected without waiting.
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const status = await handle.stat()
    if (!status.isFile()) return fileProblem(file, 'not a regular file')
    // One byte more than allowed, to detect a file that grows while it is read.
    const buffer = Buffer.alloc(Math.min(status.size, YAML_LIMITS.bytes) + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length)
      if (bytesRead === 0) break
      length += bytesRead
    }
    if (length > YAML_LIMITS.bytes || status.size > YAML_LIMITS.bytes) {
      return fileProblem(file, tooLarge(Math.max(length, status.size)))
    }
    return decode(file, buffer.subarray(0, length))
  } catch (error) {
    return unreadable(file, error)
  }
}

function decode(file: string, content: Buffer): string | Problem {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(content)
  } catch {
    const before = validPrefix(content)
    const lines = before.split('\n')
    return fileProblem(file, 'not UTF-8, expected UTF-8 text', {
      line: lines.length,
      column: (lines.at(-1)?.length ?? 0) + 1,
    })
  }
}

/** The text before the first byte that is not UTF-8. */
function validPrefix(content: Buffer): string {
  let low = 0
  let high = content.length
  // A prefix may end inside a character: `stream` ignores those bytes.
  const isValid = (end: number): boolean => {
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(content.subarray(0, end), { stream: true })
      return true
    } catch {
      return false
    }
  }
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (isValid(middle)) low = middle
    else high = middle - 1
  }
  return new TextDecoder('utf-8').decode(content.subarray(0, low), { stream: true })
}

function unreadable(file: string, error: unknown): Problem {
  const code = (error as NodeJS.ErrnoException | null)?.code
  if (code === 'ENOENT') return fileProblem(file, 'file not found')
  const why = code === 'EACCES' ? denied(file) : undefined
  return fileProblem(file, `cannot be read (${code ?? 'error'})${why === undefined ? '' : `: ${deniedClause(why)}`}`)
}
