import { cpus, totalmem } from 'node:os'
import type { Changes } from './changes.ts'
import type { Growth } from './growth/judge.ts'
import type { KeyKind } from './growth/keys.ts'
import type { Sample } from './growth/sample.ts'
import type { FaultLog } from './oracle/excuses.ts'
import type { Finding, Findings } from './oracle/findings.ts'
import type { Lines } from './oracle/lines.ts'
import type { Searched } from './oracle/search.ts'
import { STALL } from './stalls.ts'

/** The result of a run. */
export interface RunResult {
  readonly seed: string
  /** Of the program, with its commit. */
  readonly version: string
  readonly machine: string
  readonly seconds: number
  readonly callers: number
  readonly lives: number
  /** Time that processes of the run waited for a processor; delays in it are not evaluated. */
  readonly stalledSeconds: number
  readonly answers: Readonly<Record<string, number>>
  readonly logLines: number
  readonly warnings: Readonly<Record<string, number>>
  readonly secrets: number
  readonly searched: Searched
  readonly changes: Changes['done']
  readonly faults: readonly { readonly name: string; readonly atSeconds: number; readonly seconds: number }[]
  readonly growth: readonly Growth[]
  /** Of Redis, at the end. */
  readonly keys: readonly KeyKind[]
  readonly samples: readonly Sample[]
  readonly findings: readonly Finding[]
  /** Also those that are not kept. */
  readonly failures: number
}

/** The machine of a report: its figures are of no other. */
export const machineOf = (): string =>
  `Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model.trim() ?? 'CPU'}, ${Math.round(totalmem() / 2 ** 30)} GiB`

/** Faults as they are reported, from the start of the run. */
export const reportedFaults = (faults: Pick<FaultLog, 'spans'>, startedAt: number): RunResult['faults'] =>
  faults.spans
    .filter(({ name }) => name !== STALL)
    .map(({ name, from, until = from }) => ({
      name,
      atSeconds: Math.round((from - startedAt) / 100) / 10,
      seconds: Math.round((until - from) / 100) / 10,
    }))

/** Findings with what the log says of their answers. */
export const withDetails = (findings: Pick<Findings, 'all'>, lines: Pick<Lines, 'detailOf'>): readonly Finding[] =>
  findings.all.map((finding) => {
    const detail = lines.detailOf(finding.requestId ?? '')
    return detail === undefined ? finding : Object.assign({}, finding, { what: `${finding.what} (${detail})` })
  })

/** The most frequent first. */
export const sorted = (counts: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries([...counts].toSorted(([, one], [, other]) => other - one))
