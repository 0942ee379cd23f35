import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { LoadFigures, StreamFigures } from './measure.ts'

const size = (bytes: number): string => (bytes === 0 ? '0 B' : `${bytes / 1024} KiB`)
const fixed = (value: number, digits: number): string => (Number.isFinite(value) ? value.toFixed(digits) : '–')

/** A table in Markdown. */
export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), line(head.map((_cell, index) => (index === 0 ? '---' : '---:'))), ...rows.map(line)].join('\n')
}

/** A table for a body size and a number of connections. */
export const loadTable = (bytes: number, connections: number, figures: ReadonlyMap<string, LoadFigures>): string => {
  const rows = [...figures].map(([name, one]) => [
    name,
    one.cpuMicros === 0 ? '–' : fixed(one.cpuMicros, 1),
    one.cpuMicros === 0 ? '–' : fixed(one.ratio, 2),
    fixed(one.perSecond, 0),
    fixed(one.p50Ms, 2),
    fixed(one.p99Ms, 2),
  ])
  const head = ['', 'CPU µs/request', '× bare', 'requests/s', 'p50 ms', 'p99 ms']
  return `**${size(bytes)} each way, ${connections} connection${connections === 1 ? '' : 's'}**\n\n${table(head, rows)}`
}

/** CPU per request of a subject, against another one that got the same requests. */
export type CallersRatios = (name: string) => number

/** The table of callers that are verified. */
export const callersTable = (
  shape: { readonly size: number; readonly connections: number; readonly rounds: number },
  figures: ReadonlyMap<string, LoadFigures>,
  { bare, floor }: { readonly bare: CallersRatios; readonly floor: CallersRatios },
): string => {
  const rows = [...figures].map(([name, one]) => [
    name,
    fixed(one.cpuMicros, 1),
    fixed(bare(name), 2),
    fixed(floor(name), 2),
    fixed(one.perSecond, 0),
  ])
  const head = ['', 'CPU µs/request', '× bare undici', '× bare sockets', 'requests/s']
  const { connections, rounds } = shape
  const over = `${connections} connection${connections === 1 ? '' : 's'}`
  return `**Callers** (POST of ${size(shape.size)} each way, ${over}, ${rounds} rounds; ratios are medians of the rounds' own, against the same requests)\n\n${table(head, rows)}`
}

/** Cost of logins at the embedded authorization server. */
export interface LoginFigures {
  readonly figures: ReadonlyMap<string, LoadFigures>
  /** Ratios of CPU per request, medians of rounds. */
  readonly budgets: readonly { readonly what: string; readonly value: number; readonly most: number }[]
  readonly loginsPerSecond: number
  readonly cpuMsPerLogin: number
  /** Resident memory of the process before its first login, in MiB. */
  readonly idleMiB: number
}

/** The table of callers who logged in here. */
export const loginsTable = (rounds: number, { figures, budgets, ...login }: LoginFigures): string => {
  const rows = [...figures].map(([name, one]) => [name, fixed(one.cpuMicros, 1), fixed(one.perSecond, 0)])
  const kept = budgets.map(({ what, value, most }) => [what, fixed(value, 2), fixed(most, 2)])
  return [
    `**Logins** (POST of 1 KiB each way, 16 connections, ${rounds} rounds)`,
    table(['', 'CPU µs/request', 'requests/s'], rows),
    table(['CPU of a request', 'median of rounds', 'at most'], kept),
    `A complete login, from the authorization request to the tokens: ${fixed(login.cpuMsPerLogin, 1)} ms CPU of the proxy; ${fixed(login.loginsPerSecond, 0)} a second, with its users and their identity provider on the same cores. Idle, before the first of them, the process holds ${fixed(login.idleMiB, 0)} MiB (at most 110).`,
  ].join('\n\n')
}

/** The table of requests that are signed with roles. */
export const awsTable = (
  rounds: number,
  figures: LoginFigures['figures'],
  asked: { readonly callers: number; readonly roles: number; readonly hubs: number },
  most: number,
): string => {
  const rows = [...figures].map(([name, one]) => [
    name,
    fixed(one.cpuMicros, 1),
    fixed(one.perSecond, 0),
    fixed(one.pairedRatio, 2),
    fixed(most, 2),
  ])
  return [
    `**Roles at AWS** (POST of 1 KiB each way, 16 connections, ${asked.callers} callers, ${rounds} rounds)`,
    table(['', 'CPU µs/request', 'requests/s', '× the first', 'at most'], rows),
    `STS was asked ${asked.roles} times for roles of callers, never twice for the same, and ${asked.hubs} time for the hub.`,
  ].join('\n\n')
}

/** The table of tokens that are got at a token endpoint. */
export const tokensTable = (
  rounds: number,
  figures: LoginFigures['figures'],
  { callers, asked }: { readonly callers: number; readonly asked: number },
  most: number,
): string => {
  const rows = [...figures].map(([name, one]) => [
    `\`${name}\``,
    fixed(one.cpuMicros, 1),
    fixed(one.perSecond, 0),
    fixed(one.pairedRatio, 2),
    fixed(most, 2),
  ])
  return [
    `**Cached tokens** (POST of 1 KiB each way, 16 connections, ${callers} callers, ${rounds} rounds)`,
    table(['', 'CPU µs/request', 'requests/s', '× the first', 'at most'], rows),
    `Token endpoints were asked ${asked} times before, and not once meanwhile.`,
  ].join('\n\n')
}

/** Cost of requests by an amount, against the first amount. */
export type Amounts = readonly {
  readonly count: number
  readonly cpuMicros: number
  readonly ratio: number
  readonly memoryMiB: number
}[]

/** The most that a request may cost, however many there are, × the smallest amount. */
const FLAT = 1.1

/** The table of what growing numbers cost. */
export const scaleTable = (what: string, how: string, amounts: Amounts): string => {
  const rows = amounts.map(({ count, cpuMicros, ratio, memoryMiB }) => [
    String(count),
    fixed(cpuMicros, 1),
    fixed(ratio, 2),
    fixed(FLAT, 2),
    fixed(memoryMiB, 0),
  ])
  const head = [what, 'CPU µs/request', '× the first', 'at most', 'MiB after']
  return `**By the number of ${what}** (1 KiB POST, 16 connections, ${how})\n\n${table(head, rows)}`
}

/** A figure of a process beside that of the bare one. */
export interface ProcessFigure {
  readonly what: string
  readonly unit: string
  readonly value: number
  readonly bare: number
  readonly ratio: number
  /** The most that the ratio may be. */
  readonly budget: number
}

/** The table of what a process costs beside its requests. */
export const processTable = (figures: readonly ProcessFigure[]): string => {
  const rows = figures.map(({ what, unit, value, bare, ratio, budget }) => [
    what,
    `${fixed(value, 0)} ${unit}`,
    `${fixed(bare, 0)} ${unit}`,
    fixed(ratio, 2),
    fixed(budget, 2),
  ])
  const head = ['', 'extauth', 'bare', '× bare', 'at most']
  return `**The process** (one \`bearerToken\` route)\n\n${table(head, rows)}`
}

/** The table of event streams. */
export const streamTable = (count: number, bare: string, figures: ReadonlyMap<string, StreamFigures>): string => {
  const base = figures.get(bare)
  const rows = [...figures].map(([name, one]) => [
    name,
    fixed(one.bytesPerStream / 1024, 1),
    fixed(one.bytesPerStream / (base?.bytesPerStream ?? Number.NaN), 2),
    fixed(one.firstP50Ms, 2),
    fixed(one.firstP99Ms, 2),
    fixed(one.firstP99Ms / (base?.firstP99Ms ?? Number.NaN), 2),
    fixed(one.eventP50Ms, 2),
    fixed(one.eventP99Ms, 2),
  ])
  const head = ['', 'KiB/idle stream', '× bare', 'first event p50 ms', 'p99 ms', '× bare', 'event p50 ms', 'p99 ms']
  return `**Event streams** (memory with ${count} idle ones)\n\n${table(head, rows)}`
}

/** The table of what a second worker brings; `one` is the name of the single process. */
export const workersTable = (one: string, figures: ReadonlyMap<string, LoadFigures>): string => {
  const single = figures.get(one)?.perSecond ?? Number.NaN
  const rows = [...figures].map(([name, { cpuMicros, perSecond, pairedRatio }]) => [
    name,
    fixed(cpuMicros, 0),
    fixed(pairedRatio, 2),
    fixed(perSecond / single, 2),
    name === one ? '1.00' : fixed(2 / pairedRatio, 2),
  ])
  const head = [
    '',
    'CPU µs per request',
    '× one',
    'requests/s × one, cores shared with the load',
    'with two free cores',
  ]
  return `**A second worker** (1 KiB POST to \`bearerToken\`, 64 connections; at least 1.6 × with two free cores)\n\n${table(head, rows)}`
}

const BEGIN = '<!-- bench:begin (written by `npm run bench`) -->'
const END = '<!-- bench:end -->'

/** Replaces what is between the markers of a document, or adds them at its end. */
export const writeReport = (path: string, text: string): void => {
  const old = existsSync(path) ? readFileSync(path, 'utf8') : '# Performance\n'
  const block = `${BEGIN}\n\n${text}\n\n${END}`
  const [from, to] = [old.indexOf(BEGIN), old.indexOf(END)]
  const next =
    from < 0 || to < 0 ? `${old.trimEnd()}\n\n${block}\n` : old.slice(0, from) + block + old.slice(to + END.length)
  writeFileSync(path, next)
}
