import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import type { Sockets } from '../sockets.ts'
import { extauth, type Running } from './process.ts'
import { configFolder, type RunningTestProxy } from './run.ts'

export interface WorkersProxy extends Pick<
  RunningTestProxy,
  'url' | 'adminUrl' | 'directory' | 'write' | 'reload' | 'close'
> {
  readonly running: Running
  /** Process ids of the workers that are there now. */
  pids(): Promise<number[]>
  admin(path: string, method?: string): Promise<{ readonly status: number; readonly json: Record<string, unknown> }>
  metric(line: string): Promise<number>
}

/** Runs `extauth proxy --workers N` as a process of its own, with these files on free ports. */
export async function runWorkersProcess(
  sockets: Sockets,
  files: Readonly<Record<string, string | Buffer>>,
  options: {
    readonly workers?: number
    readonly listen?: string
    readonly args?: readonly string[]
    readonly env?: Readonly<Record<string, string>>
  } = {},
): Promise<WorkersProxy> {
  const { workers = 2, listen = '127.0.0.1:0', args = [], env = {} } = options
  const folder = await configFolder(files)
  const { directory, write } = folder
  const where = ['--config', directory, '--secrets-dir', `${directory}/secrets`, '--listen', listen]
  const command = ['proxy', ...where, '--admin', '127.0.0.1:0', '--workers', String(workers), ...args]
  const running = extauth(command, { env })
  const close = async (): Promise<void> => {
    running.process.kill('SIGKILL')
    await running.ended
    await folder.remove()
  }
  sockets.closing({ close })
  const { url, admin: adminUrl } = (await running.line('listening')) as { url: string; admin: string }
  const admin: WorkersProxy['admin'] = async (path, method = 'GET') => {
    const response = await fetch(`${adminUrl}${path}`, { method })
    return { status: response.status, json: (await response.json()) as Record<string, unknown> }
  }
  return {
    url,
    adminUrl,
    directory,
    write,
    running,
    admin,
    close,
    async reload() {
      const { status, json } = await admin('/reload', 'POST')
      return status === 200 ? { ok: true } : { ok: false, problems: json['problems'] as string[] }
    },
    pids: () => childrenOf(running.process.pid ?? 0),
    async metric(line) {
      const text = await (await fetch(`${adminUrl}/metrics`)).text()
      const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `))
      return Number(found?.slice(line.length + 1) ?? 0)
    },
  }
}

async function childrenOf(pid: number): Promise<number[]> {
  const { readFile } = await import('node:fs/promises')
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'latin1').catch(() => '')
  return text.split(' ').filter(Boolean).map(Number)
}

export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  readonly body: string
}

/** A request on a new connection: with several workers, it reaches the next one. */
export function alone(
  url: string,
  options: {
    readonly method?: string
    readonly headers?: Readonly<Record<string, string>>
    readonly body?: unknown
    readonly socketPath?: string
    readonly ca?: Buffer
  } = {},
): Promise<Answer> {
  const { method = 'POST', headers = {}, body, socketPath, ca } = options
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const request = (url.startsWith('https:') ? httpsRequest : httpRequest)(
    url,
    { method, headers: { ...json, ...headers }, agent: false, socketPath, ca },
    (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => (text += chunk))
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body: text }))
      response.on('error', reject)
    },
  )
  request.on('error', reject)
  request.end(body === undefined ? undefined : JSON.stringify(body))
  return promise
}
