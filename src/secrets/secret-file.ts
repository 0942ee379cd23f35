import { isUtf8 } from 'node:buffer'
import { join } from 'node:path'
import { Failure, Secret, type SecretForm, type SecretHandle } from '../core/index.ts'
import { openWatchedFile, type WatchedFileOptions } from '../files/index.ts'

/** As much as Kubernetes lets a secret hold. */
const MAX_BYTES = 1024 * 1024

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * The value of a secret file without one trailing newline; undefined when blank (a byte order mark is). Invalid UTF-8
 * is undefined, or all bytes for binary secrets.
 */
function valueOf(content: Buffer, form: SecretForm): string | Buffer | undefined {
  return isUtf8(content) ? textOf(content) : form === 'bytes' ? content : undefined
}

function textOf(content: Buffer): string | undefined {
  const text = decoder.decode(content).replace(/\r?\n$/, '')
  return text.trim() === '' ? undefined : text
}

export interface SecretFile extends SecretHandle {
  close(): void
}

export interface SecretFileOptions {
  /** Default text. */
  readonly form?: SecretForm
  /** The value is another than before; the first one counts. */
  readonly onLoad: (label: string) => void
  /** A read failed; `hasValue`: the previous value stays in use. */
  readonly onProblem: (label: string, problem: string, hasValue: boolean) => void
  /** Milliseconds between looks without an event. Default 30 s. */
  readonly pollMs?: number
}

/**
 * One secret in the file `<directory>/<label>`, kept current. A load failure (missing, empty, invalid UTF-8 for text,
 * over 1 MiB, not a regular file, a link out of the directory) keeps the previous value (decisions §6).
 */
export function openSecretFile(directory: string, label: string, options: SecretFileOptions): SecretFile {
  const { form = 'text' } = options
  let secret: Secret | undefined
  let version = 0

  const load = (content: Buffer | undefined) => {
    const value = content === undefined ? undefined : valueOf(content, form)
    const next = value === undefined ? undefined : new Secret(value)
    // Another newline at the end is not another secret.
    if (next === undefined || secret?.equals(next) === true) return
    secret = next
    version += 1
    options.onLoad(label)
  }

  const watch: WatchedFileOptions = {
    maxBytes: MAX_BYTES,
    within: directory,
    accept: (content) => valueOf(content, form) !== undefined,
    onChange: () => load(file.read()),
    onProblem: (problem) => options.onProblem(label, problem, secret !== undefined),
    ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
  }
  const file = openWatchedFile(join(directory, label), watch)
  load(file.read())

  return {
    label,
    current() {
      if (secret === undefined)
        throw new Failure('secret_unavailable', { detail: `secret ${label} cannot be read`, secret: label })
      return secret
    },
    get version() {
      return version
    },
    async refresh() {
      const before = version
      await file.refresh()
      return version !== before
    },
    close: () => file.close(),
  }
}
