import { accessSync, constants } from 'node:fs'
import path from 'node:path'
import {
  type AuditNotice,
  type AuditSink,
  causeOf,
  type Clock,
  Failure,
  type Log,
  type Metrics,
  type RequestObserver,
  type Secret,
} from '../core/index.ts'
import { type AuditSettings, recordedEvents, STDOUT } from '../resources/index.ts'
import { type AuditEvent, createRenderer, eventOfNotice } from './event.ts'
import { type RefusalSummary, RefusalSummaries } from './refusal-summary.ts'
import { AuditTrace, createFingerprint, type RequestTrail, type RoleRecord } from './request-trace.ts'
import { TrailWriter } from './trail-writer.ts'

export interface AuditTrailOptions {
  readonly clock: Clock
  readonly log: Log
  readonly metrics: Metrics
  readonly version: string
  /** The role decision of a request; undefined without role mappings. */
  readonly roleOf: (requestId: string) => RoleRecord | undefined
  /** Key of fingerprints without `keySecretRef`. */
  readonly ephemeralKey: Secret
  /** Milliseconds that a response waits for its event. Default 5 s. */
  readonly waitMs?: number
  /** False checks the directory of the file and opens nothing. Default true. */
  readonly opensFiles?: boolean
}

/** The trail of a configuration before it is active. */
export interface PreparedTrail {
  /** Replaces the previous trail, whose last events are written to its file. */
  activate(): void
  /** Called after the last request: writes the last events and closes what only this configuration opened. */
  release(): Promise<void>
}

/** The audit trail of a process; the active configuration decides what it records. */
export interface AuditTrail extends AuditSink {
  readonly observer: RequestObserver
  /** Opens the file of `settings`; undefined: none is kept. Throws `config_error`. */
  prepare(settings: AuditSettings | undefined, key: (() => Secret) | undefined): PreparedTrail
  /** Opens the file again if its path names another one. */
  reopen(): void
  /** Writes the last events. */
  close(): Promise<void>
}

/** Shorter keys could be guessed. */
export const LEAST_KEY_BYTES = 32

interface Active {
  readonly writer: TrailWriter
  readonly settings: AuditSettings
  readonly requests: RequestTrail
  readonly summaries: RefusalSummaries
  record(event: AuditEvent): void
}

/** Creates the audit trail of a process, without a file at first. */
export function createAuditTrail(options: AuditTrailOptions): AuditTrail {
  const { clock, opensFiles = true } = options
  let active: Active | undefined
  /** Trails whose files are open: that of a replaced configuration until its last request is over. */
  const open = new Set<Active>()

  const release = async (trail: Active): Promise<void> => {
    trail.summaries.flush()
    open.delete(trail)
    if ([...open].every(({ writer }) => writer !== trail.writer)) await trail.writer.close()
  }

  return {
    observer: { arrived: (inbound) => active && new AuditTrace(active.requests, inbound) },
    notice(notice: AuditNotice) {
      if (active === undefined || !active.requests.records(notice.type)) return
      active.record(eventOfNotice(notice, clock.now()))
    },
    prepare(settings, key) {
      if (settings === undefined) return { activate: () => void (active = undefined), release: () => Promise.resolve() }
      const fingerprintKey = key?.() ?? options.ephemeralKey
      if (fingerprintKey.bytes().length < LEAST_KEY_BYTES)
        throw new Failure('config_error', {
          detail: `the key of audit.keySecretRef has ${fingerprintKey.bytes().length} bytes, expected at least ${LEAST_KEY_BYTES}`,
        })
      if (!opensFiles) {
        checkDirectory(settings.file)
        return { activate: () => undefined, release: () => Promise.resolve() }
      }
      const target = settings.file === STDOUT ? undefined : settings.file
      const { whenFull } = settings
      const isSame = active?.settings.file === settings.file && active.settings.whenFull === whenFull
      const writer =
        isSame && active !== undefined ? active.writer : new TrailWriter({ ...options, path: target, whenFull })
      const next = activate(options, settings, writer, fingerprintKey)
      open.add(next)
      return {
        activate: () => void (active = next),
        release: () => (open.has(next) ? release(next) : Promise.resolve()),
      }
    },
    reopen: () => active?.writer.reopen(),
    async close() {
      await Promise.all([...open].map(release))
    },
  }
}

function activate(options: AuditTrailOptions, settings: AuditSettings, writer: TrailWriter, key: Secret): Active {
  const { clock, roleOf, version } = options
  const recorded = recordedEvents(settings)
  const render = createRenderer({ format: settings.format, version })
  const record = (event: AuditEvent): void => writer.add(render(event))
  const summaries = new RefusalSummaries((summary) => record(eventOfSummary(summary)))
  const isSummarized = ({ client, extra, atMs }: AuditEvent): boolean =>
    extra['status'] === 401 && client !== undefined && !summaries.isSingle(client, atMs)
  return {
    writer,
    settings,
    summaries,
    record,
    requests: {
      includesArguments: settings.includeArguments,
      fingerprint: createFingerprint(() => key),
      described: new WeakMap(),
      roleOf,
      now: () => clock.now(),
      records: (type) => recorded.has(type),
      record: (event) => void (isSummarized(event) || record(event)),
      blocking:
        settings.whenFull === 'block'
          ? {
              ready: () => writer.ready(),
              written: (event) => (isSummarized(event) ? Promise.resolve('written') : writer.written(render(event))),
            }
          : undefined,
    },
  }
}

const eventOfSummary = ({ client, repeated, firstAtMs, lastAtMs }: RefusalSummary): AuditEvent => ({
  type: 'http_request',
  atMs: lastAtMs,
  outcome: 'denied',
  client: client ?? '',
  component: 'proxy',
  target: { type: 'endpoint' },
  extra: {
    status: 401,
    repeated,
    firstAt: new Date(firstAtMs).toISOString(),
    lastAt: new Date(lastAtMs).toISOString(),
  },
})

function checkDirectory(file: string): void {
  if (file === STDOUT) return
  try {
    accessSync(path.dirname(file), constants.W_OK)
  } catch (cause) {
    throw new Failure('config_error', {
      detail: `audit.file ${file} cannot be created (${causeOf(cause).code ?? 'error'}), expected a file in an existing directory that the proxy may write`,
      cause,
    })
  }
}
