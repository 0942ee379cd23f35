import { join } from 'node:path'
import {
  type Clock,
  denied,
  type Log,
  type Metrics,
  RefCountedPool,
  type SecretForm,
  type Secrets,
} from '../core/index.ts'
import { openSecretFile, type SecretFile } from './secret-file.ts'
import { labelOf } from './secret-ref.ts'

export interface SecretsOptions {
  readonly log: Log
  readonly metrics: Metrics
  readonly clock: Clock
  /** Poll interval in milliseconds without file system events. Default 30 s. */
  readonly pollMs?: number
}

/** The secrets of one holder; unused ones are neither watched nor kept. */
export interface HeldSecrets extends Secrets {
  release(): void
}

/** Explanations of load problems. */
const WHY: Readonly<Record<string, { readonly why: string }>> = { refused: { why: 'it is blank, or no UTF-8 text' } }

export interface OpenSecrets {
  hold(): HeldSecrets
}

/**
 * The secrets in a directory, one file `<directory>/<name>/<key>` each, as Kubernetes mounts them (decisions §6). A
 * reference gives every holder the same handle; its file is read at once and then whenever it changes. `handle` throws
 * `config_error` for a name or key that is not valid; a file that is missing is `secret_unavailable` until it appears.
 */
export function openSecrets(directory: string, options: SecretsOptions): OpenSecrets {
  const { log, metrics } = options
  const reloads = metrics
    .counter('extauth_secret_reloads_total', 'Secrets whose value was loaded or has changed.')
    .with()
  const failures = metrics.counter(
    'extauth_secret_reload_failures_total',
    'Secrets that could not be read; the previous value stays in use.',
    ['reason'],
  )
  const files = new RefCountedPool<SecretFile>((file) => file.close())

  const open = (label: string, form: SecretForm): SecretFile =>
    openSecretFile(directory, label, {
      form,
      ...(options.pollMs === undefined ? {} : { pollMs: options.pollMs }),
      onLoad: () => {
        reloads.add()
        log.info({ secret: label }, 'secret loaded')
      },
      onProblem: (_label, problem, hasValue) => {
        failures.with(problem).add()
        const message = hasValue ? 'secret cannot be read, the value from before stays' : 'secret is not available'
        const why = problem === 'unreadable' ? denied(join(directory, label)) : WHY[problem]
        log.warn({ secret: label, directory, reason: problem, ...why }, message)
      },
    })

  return {
    hold() {
      const held = files.hold()
      return {
        handle(ref, form = 'text') {
          const label = labelOf(ref)
          return held.get(`${form} ${label}`, () => open(label, form))
        },
        // Closing a watched file waits for nothing.
        release: () => void held.release(),
      }
    },
  }
}
