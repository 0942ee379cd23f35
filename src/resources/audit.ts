import { z } from 'zod'
import { AUDIT_EVENTS, type AuditEventType } from '../core/index.ts'
import { secretRef } from '../fields/index.ts'

/** `audit.file` for standard output. */
export const STDOUT = 'stdout'

const events = () => z.array(z.enum(AUDIT_EVENTS)).max(AUDIT_EVENTS.length).default([])

/** The audit trail of a ProxyConfig (rules.md §7). */
export const audit = () =>
  z.strictObject({
    file: z
      .string()
      .min(1)
      .max(4096)
      .regex(/^[^\0\r\n]+$/, { error: 'expected the path of a file on one line, or "stdout"' })
      .describe('File that events are appended to, a JSON line each, created with mode 0600; or `stdout`.'),
    format: z
      .enum(['toolhive', 'ocsf'])
      .default('toolhive')
      .describe('Format of events: that of ToolHive, or OCSF 1.6 (classes 6003 and 3002).'),
    events: events().describe('Types of events that are recorded. Empty: all.'),
    exclude: events().describe('Types of events that are not recorded.'),
    includeArguments: z
      .boolean()
      .default(false)
      .describe(
        'Records arguments of tools and prompts up to 1 KiB; fields named like secrets are masked. They may hold personal data.',
      ),
    whenFull: z
      .enum(['drop', 'block'])
      .default('drop')
      .describe(
        'When an event cannot be written: `drop` counts it as lost; `block` delays the response until its event is written, and answers 503 if that fails.',
      ),
    keySecretRef: secretRef('bytes')
      .optional()
      .describe(
        'Key of the fingerprints of credentials, at least 32 bytes; with the same key, fingerprints of all replicas are comparable. Random per process when absent.',
      ),
  })
export type AuditSettings = z.output<ReturnType<typeof audit>>

/** The types of events that settings record. */
export const recordedEvents = ({
  events: only,
  exclude,
}: Pick<AuditSettings, 'events' | 'exclude'>): ReadonlySet<AuditEventType> =>
  new Set((only.length === 0 ? AUDIT_EVENTS : only).filter((type) => !exclude.includes(type)))
