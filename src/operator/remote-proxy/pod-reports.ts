import type { Clock } from '../../core/index.ts'
import type { KubeObject } from '../../kube/index.ts'

/** The content of a pod's `/readiness` that its status in the cluster lacks. */
export interface PodReport {
  /** The revision that it runs; undefined: its release does not report one. */
  readonly revision: string | undefined
  /** Errors of connections to its remote server; empty: none; undefined: not known yet. */
  readonly unreachable: readonly string[] | undefined
}

/** A proxy pod with the fields needed for polling. */
export interface ReportingPod {
  readonly uid: string
  readonly namespace: string
  /** Value of the label shared by all pods of a proxy. */
  readonly instance: string
  /** URL of its admin listener; undefined: it cannot be polled. */
  readonly url: string | undefined
}

export interface PodReports {
  /** Reports of the ready pods of a proxy; undefined for one that has not responded. */
  readonly of: (namespace: string, instance: string) => readonly (PodReport | undefined)[]
  start(): void
  close(): void
}

export interface PodReportsOptions {
  readonly pods: () => readonly ReportingPod[]
  /** Reads a URL as JSON, with limits of time and size. */
  readonly read: (url: string) => Promise<unknown>
  readonly isLeader: () => boolean
  /** The report of a pod changed. */
  readonly onChange: (pod: ReportingPod) => void
  readonly clock: Clock
}

const TICK_MS = 5_000
/** Milliseconds between two polls of a pod. */
const PERIOD_MS = 10_000
/** For all pods: with more than a hundred the period is longer. */
const MOST_PER_TICK = 50
const AT_ONCE = 8

interface Known {
  askedMs: number
  report: PodReport | undefined
}

/** Polls the pods of all proxies in turn, least recently polled first: at most ten requests per second. */
export function createPodReports(options: PodReportsOptions): PodReports {
  const { pods, read, isLeader, onChange, clock } = options
  const known = new Map<string, Known>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const ask = async (pod: ReportingPod, url: string): Promise<void> => {
    const entry = known.get(pod.uid) ?? { askedMs: 0, report: undefined }
    known.set(pod.uid, entry)
    entry.askedMs = clock.now()
    const report = await read(url).then(reportIn, () => undefined)
    if (JSON.stringify(report) === JSON.stringify(entry.report)) return
    entry.report = report
    if (!isClosed) onChange(pod)
  }

  const round = async (): Promise<void> => {
    const all = pods()
    const there = new Set(all.map(({ uid }) => uid))
    for (const uid of known.keys()) if (!there.has(uid)) known.delete(uid)
    const askedMs = ({ uid }: ReportingPod): number => known.get(uid)?.askedMs ?? 0
    const due = all
      .filter((pod) => pod.url !== undefined && clock.now() - askedMs(pod) >= PERIOD_MS)
      .toSorted((a, b) => askedMs(a) - askedMs(b))
      .slice(0, MOST_PER_TICK)
    const next = due.values()
    const worker = async (): Promise<void> => {
      for (const pod of next) if (pod.url !== undefined && !isClosed) await ask(pod, pod.url)
    }
    await Promise.all(Array.from({ length: AT_ONCE }, worker))
  }

  const tick = async (): Promise<void> => {
    if (isLeader()) await round()
    if (!isClosed) timer = setTimeout(() => void tick(), TICK_MS).unref()
  }

  return {
    of: (namespace, instance) =>
      pods()
        .filter((pod) => pod.namespace === namespace && pod.instance === instance && pod.url !== undefined)
        .map(({ uid }) => known.get(uid)?.report),
    start: () => void tick(),
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}

type Json = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Strings of a pod are copied into a status: only short, printable ones are accepted. */
const wordIn = (value: unknown): string => (typeof value === 'string' && /^[\w .-]{1,64}$/.test(value) ? value : '?')
const MOST_REMOTES = 4

/** Parses a response of `/readiness`; throws if it is invalid. */
export function reportIn(answer: unknown): PodReport {
  if (!isObject(answer) || typeof answer['status'] !== 'string') throw new TypeError('not a response of /readiness')
  const { revision, unreachable } = isObject(answer['detail']) ? answer['detail'] : {}
  return {
    revision: typeof revision === 'string' ? wordIn(revision) : undefined,
    unreachable: Array.isArray(unreachable)
      ? unreachable
          .slice(0, MOST_REMOTES)
          .map((one: unknown) => (isObject(one) ? `${wordIn(one['step'])} ${wordIn(one['code'])}` : '?'))
      : undefined,
  }
}

interface PodFields {
  readonly spec?: {
    readonly hostNetwork?: boolean
    readonly containers?: readonly {
      readonly ports?: readonly { readonly name?: string; readonly containerPort?: number }[]
    }[]
  }
  readonly status?: {
    readonly podIP?: string
    readonly conditions?: readonly { readonly type: string; readonly status: string }[]
  }
}

/** The fields of a pod that are kept, with its URL while it is ready. */
export function reportingPod(pod: KubeObject, instance: string): ReportingPod {
  const { uid = '', namespace = '', deletionTimestamp } = pod.metadata
  const { spec = {}, status = {} } = pod as PodFields
  const isReady = status.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') === true
  const port = spec.containers?.flatMap(({ ports = [] }) => ports).find(({ name }) => name === 'admin')?.containerPort
  const { podIP: ip } = status
  const isAsked = isReady && deletionTimestamp === undefined && spec.hostNetwork !== true
  const host = ip?.includes(':') === true ? `[${ip}]` : ip
  const url = isAsked && host !== undefined && port !== undefined ? `http://${host}:${port}/readiness` : undefined
  return { uid, namespace, instance, url }
}
