import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { askInManyWays } from './gateways/bodies.ts'
import { askAtOnce, askAtTheLastMoment, type CrowdVerdict } from './gateways/crowd.ts'
import { installGateways, missingGateways, versionOf } from './gateways/programs.ts'
import { CLIENTS, overCommand, problemOf } from './gateways/traffic.ts'
import { createGatewayWorld, type GatewayWorld } from './gateways/world.ts'
import type { Peer } from './peers.ts'

const PROGRAMS = ['nginx', 'haproxy'] as const
const AT_ONCE = 200
/** Part of the requests that may meet a connection which the other side is just ending: a POST is not repeated. */
const MOST_LOST = 0.05
const LANES = 60
/** Keep-alive time of the servers behind the proxy, in milliseconds. */
const RESTS = { nginx: 1000, haproxy: 500 }
const MCP_REMOTE = 'mcp-remote@0.15.1'
const INSTALL_MS = 180_000

/** nginx and HAProxy before us and behind us, with MCP by both releases of the official client and by mcp-remote. */
export function gatewaysPeer(say: (line: string) => void): Peer {
  return {
    name: 'nginx and HAProxy',
    missing: () => missingGateways(PROGRAMS),
    async run() {
      installGateways(PROGRAMS)
      const versions = `nginx ${versionOf('nginx')}, HAProxy ${versionOf('haproxy')}`
      const world = await createGatewayWorld()
      let isRight = true
      const hear = (what: string, wrong: readonly string[]): void => {
        say(`${versions} ran: ${what}: ${wrong.length === 0 ? 'right' : wrong.slice(0, 5).join('; ')}`)
        isRight &&= wrong.length === 0
      }
      try {
        const { conversations, wrong } = await converseEverywhere(world)
        hear(`${conversations} conversations of MCP by both releases of the client, before, behind and both`, wrong)
        const crowd = await crowdEverywhere(world)
        hear(
          `${crowd.right} requests, ${AT_ONCE} at once; ${crowd.lost} met a connection that ended`,
          problemsOf(crowd),
        )
        const last = await lastMoments(world)
        hear(`${last.right} requests as kept connections end, ${last.lost} more met one that ended`, last.wrong)
        hear('64 MiB both ways, chunks, 100-continue, HTTP/1.0, HEAD, an early answer, upgrades', await bodies(world))
        hear(`${MCP_REMOTE} through each of them`, await askMcpRemote(world))
        return isRight
      } finally {
        await world.close()
      }
    },
  }
}

async function converseEverywhere({ fronts, mcpRoutes }: GatewayWorld) {
  const wrong: string[] = []
  let conversations = 0
  for (const [front, base] of Object.entries(fronts))
    for (const route of mcpRoutes)
      for (const [client, talk] of Object.entries(CLIENTS)) {
        conversations++
        const said = await problemOf(talk(new URL(`${base}/${route}`)))
        if (said !== undefined) wrong.push(`${client} by ${front} to ${route} ${said}`)
      }
  return { conversations, wrong }
}

const together = (verdicts: readonly CrowdVerdict[]): CrowdVerdict => ({
  right: verdicts.reduce((sum, { right }) => sum + right, 0),
  lost: verdicts.reduce((sum, { lost }) => sum + lost, 0),
  wrong: verdicts.flatMap(({ wrong }) => wrong),
})

const problemsOf = ({ right, lost, wrong }: CrowdVerdict): readonly string[] =>
  lost > MOST_LOST * (right + lost) ? [...wrong, `${lost} are too many`] : wrong

async function crowdEverywhere({ fronts, plainRoutes }: GatewayWorld): Promise<CrowdVerdict> {
  const verdicts: CrowdVerdict[] = []
  for (const base of Object.values(fronts))
    for (const route of plainRoutes) verdicts.push(await askAtOnce(`${base}/${route}`, AT_ONCE))
  return together(verdicts)
}

async function lastMoments({ fronts, plainRoutes }: GatewayWorld): Promise<CrowdVerdict> {
  const verdicts: CrowdVerdict[] = []
  for (const route of plainRoutes.filter((name) => !name.endsWith('none'))) {
    const restMs = route.includes('haproxy') ? RESTS.haproxy : RESTS.nginx
    verdicts.push(await askAtTheLastMoment(`${fronts['direct']}/${route}`, restMs, LANES))
  }
  return together(verdicts)
}

async function bodies({ fronts, plainRoutes }: GatewayWorld): Promise<readonly string[]> {
  const wrong: string[] = []
  for (const route of plainRoutes) {
    const found = await askInManyWays(`${fronts['direct']}/${route}`, { hasSmallLimit: route.includes('nginx') })
    wrong.push(...found.map((line) => `behind, ${route}: ${line}`))
  }
  for (const [front, base] of Object.entries(fronts)) {
    // Over HTTP/1.0 there is no upgrade.
    const found = await askInManyWays(`${base}/plain-none`, { upgrades: !front.includes('1.0') })
    wrong.push(...found.map((line) => `before, ${front}: ${line}`))
  }
  return wrong
}

/** A client for those that can only start a command. */
async function askMcpRemote({ fronts, mcpRoutes }: GatewayWorld): Promise<readonly string[]> {
  const directory = mkdtempSync(path.join(tmpdir(), 'extauth-mcp-remote-'))
  try {
    writeFileSync(path.join(directory, 'package.json'), '{}')
    const args = ['install', '--no-audit', '--no-fund', '--ignore-scripts', MCP_REMOTE]
    if (spawnSync('npm', args, { cwd: directory, stdio: 'ignore', timeout: INSTALL_MS }).status !== 0)
      throw new Error(`npm ${args.join(' ')} did not work`)
    const bin = path.join(directory, 'node_modules/mcp-remote/dist/proxy.js')
    const env = { PATH: process.env['PATH'] ?? '', HOME: directory, MCP_REMOTE_CONFIG_DIR: directory }
    const wrong: string[] = []
    for (const [front, base] of Object.entries(fronts)) {
      const url = `${base}/${mcpRoutes[0]}`
      const said = await overCommand(process.execPath, [bin, url, '--allow-http', '--transport', 'http-only'], env)
      if (said !== undefined) wrong.push(`by ${front} it ${said}`)
    }
    return wrong
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
