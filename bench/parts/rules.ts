import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { collectGarbage, inspectable } from '../inspector.ts'
import { figuresOf, type LoadFigures, loadRounds, type Subject } from '../measure.ts'
import { freePort } from '../../lab/free-port.ts'
import { startIssuer } from '../callers.ts'
import { type Generator, memoryOf, peakOf, type Running, startProxyCommand } from '../processes.ts'
import { table } from '../report.ts'

const SHAPE = { size: 1024, connections: 16 }
const NONE = 'no rules'
const RULES = 50
const LISTS = 60
const MIB = 1024 * 1024

export interface RulesOptions {
  readonly rounds: number
  readonly roundMs: number
  /** Another checkout of this project, measured without rules in the same rounds. */
  readonly against: string | undefined
}

/** So many rules of which the last allows the call; `all`: each expression is evaluated, else those of two rules. */
function authorizationOf(count: number, all = false): object {
  const rules = Array.from({ length: count - 1 }, (_, index) => ({
    name: `r${index}`,
    ...(all ? {} : { tools: index === count - 2 ? ['get_*'] : [`t${index}_*`, `u${index}_*`] }),
    when: `claims.sub == "user-${index}-that-does-not-call"`,
    effect: 'allow',
  }))
  const last = { name: 'last', tools: ['get_*'], when: 'claims.aud != ""', effect: 'allow' }
  return { authorization: { default: 'deny', rules: [...rules, last] } }
}

/**
 * What reading requests costs: calls of 1 KiB of verified callers without rules, with credentials per tool, with rules
 * and with an audit trail; and the memory of a list of 5,000 tools.
 * Gives a table.
 */
export async function runRules(generator: Generator, backend: string, options: RulesOptions): Promise<string> {
  const issuer = await startIssuer()
  const running: Running[] = []
  const subjects: Subject[] = []
  const authorizations = issuer.tokens(200).map((token) => `Bearer ${token}`)
  const trails = mkdtempSync(path.join(tmpdir(), 'extauth-bench-'))
  const add = async (name: string, settings: object, audit?: object, launcher?: string): Promise<void> => {
    const route = {
      name: 'ruled',
      path: '/ruled',
      target: `${backend}/mcp`,
      externalAuthConfigRef: { name: 'bearertoken' },
      auth: {
        mode: 'oauth',
        oauth: {
          resourceUrl: issuer.audience,
          providers: [
            {
              name: 'bench',
              issuerUrl: issuer.url,
              audience: issuer.audience,
              jwksUrl: `${issuer.url}/jwks`,
              allowPrivateIP: true,
            },
          ],
        },
      },
      ...settings,
    }
    const proxy = await startProxyCommand({
      backend,
      types: ['bearerToken'],
      routes: [`    - ${JSON.stringify(route)}\n${audit === undefined ? '' : `  audit: ${JSON.stringify(audit)}\n`}`],
      launcher,
    })
    running.push(proxy)
    const url = `${proxy.url}/ruled`
    await generator.ask({ kind: 'prepare', name, url, size: SHAPE.size, authorizations, tool: 'get_file' })
    subjects.push({ name, url, pid: proxy.pid, prepared: name })
  }
  try {
    const other = { tools: ['delete_*'], externalAuthConfigRef: { name: 'bearertoken' } }
    await add(NONE, {})
    await add('credentials for another tool', { credentials: [other] })
    await add('one rule', authorizationOf(1))
    await add(`${RULES} rules, two with the tool`, authorizationOf(RULES))
    await add(`${RULES} rules, each evaluated`, authorizationOf(RULES, true))
    await add('audit to a file, no rules', {}, { file: path.join(trails, 'plain.jsonl') })
    await add(`audit to a file, ${RULES} rules`, authorizationOf(RULES), { file: path.join(trails, 'ruled.jsonl') })
    if (options.against !== undefined) {
      const launcher = path.resolve(options.against, 'bin/extauth.cjs')
      await add('the other extauth, no rules', {}, undefined, launcher)
    }
    for (const subject of subjects) await generator.ask({ kind: 'load', ...SHAPE, ...subject, ms: 2500 })
    const seen = await loadRounds(generator, subjects, { ...SHAPE, ms: options.roundMs }, options.rounds)
    await Promise.all(running.splice(0).map((one) => one.stop()))
    return rulesTable(figuresOf(seen, NONE), await listMemory(backend))
  } finally {
    await Promise.all(running.map((one) => one.stop()))
    issuer.close()
    rmSync(trails, { recursive: true, force: true })
  }
}

/** Peak of resident memory beyond that before, in bytes: while lists pass, and while they are filtered. */
async function listMemory(backend: string): Promise<{ readonly passed: number; readonly filtered: number }> {
  const measured = async (authorization: string): Promise<number> => {
    const port = await freePort()
    const proxy = await startProxyCommand({
      backend,
      env: inspectable(port),
      types: ['bearerToken'],
      routes: [
        `    - { name: list, path: /list, target: "${backend}/list", externalAuthConfigRef: { name: bearertoken }${authorization} }\n`,
      ],
    })
    const list = async (): Promise<void> => {
      const response = await fetch(`${proxy.url}/list`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}',
      })
      await response.bytes()
      if (response.status !== 200) throw new Error(`a list is answered with ${response.status}`)
    }
    try {
      // What the first ones compile and the room for young objects are the same for all others.
      for (let time = 0; time < LISTS; time++) await list()
      const peaks: number[] = []
      for (let time = 0; time < 15; time++) {
        await collectGarbage(port)
        const before = memoryOf(proxy.pid)
        writeFileSync(`/proc/${proxy.pid}/clear_refs`, '5')
        await list()
        peaks.push(peakOf(proxy.pid) - before)
      }
      return peaks.toSorted((a, b) => a - b)[7] ?? Number.NaN
    } finally {
      await proxy.stop()
    }
  }
  const passed = await measured('')
  return {
    passed,
    filtered: await measured(', authorization: { default: deny, rules: [{ name: r, tools: [get_*], effect: allow }] }'),
  }
}

function rulesTable(
  figures: ReadonlyMap<string, LoadFigures>,
  { passed, filtered }: Awaited<ReturnType<typeof listMemory>>,
): string {
  const rows = [...figures].map(([name, { cpuMicros, pairedRatio, p50Ms }]) => [
    name,
    cpuMicros.toFixed(0),
    pairedRatio.toFixed(2),
    p50Ms.toFixed(2),
  ])
  const title = '**Rules** (1 KiB calls of 200 verified callers, 16 connections; 50 rules at most 1.15 × none)'
  const list = `A list of 5,000 tools (${((5000 * 1021) / MIB).toFixed(1)} MiB): peak of memory ${(passed / MIB).toFixed(1)} MiB where it passes, ${(filtered / MIB).toFixed(1)} MiB where it is filtered (at most 4 MiB more).`
  return `${title}\n\n${table(['', 'CPU µs per request', `× ${NONE}`, 'median ms'], rows)}\n\n${list}`
}
