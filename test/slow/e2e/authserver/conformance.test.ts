import { spawn } from 'node:child_process'
import path from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { postJson } from '../../../support/authserver/rig.ts'
import { createSockets } from '../../../support/sockets.ts'
import { freePort } from '../../../support/e2e/run.ts'
import { openWorld } from '../../../support/e2e/authserver/world.ts'

const CLI = path.join(import.meta.dirname, '../../../../node_modules/.bin/conformance')
const TIMEOUT_MS = 60_000

const sockets = createSockets()
afterEach(() => sockets.closeAll())

it(
  'passes every scenario of the official conformance suite for authorization servers',
  async () => {
    const world = await openWorld(sockets)
    const port = await freePort()
    const registered = await postJson(`${world.url}/oauth/register`, {
      client_name: 'Conformance suite',
      redirect_uris: [`http://127.0.0.1:${port}/callback`],
      token_endpoint_auth_method: 'none',
    })
    const { client_id: clientId } = (await registered.json()) as { client_id: string }
    // Without --scenario: the grant's scenario uses what the one of the metadata has read.
    const args = ['--url', world.url, '--client-id', clientId, '--resource', `${world.url}/mcp`, '--port', `${port}`]
    const suite = spawn(process.execPath, [CLI, 'authorization', ...args], { timeout: TIMEOUT_MS })
    sockets.closing({ close: () => suite.kill() })
    let output = ''
    let wasSent = false
    for await (const chunk of suite.stdout as AsyncIterable<Buffer>) {
      output += chunk.toString()
      const asked = /^http\S+\/oauth\/authorize\?\S+$/m.exec(output)?.[0]
      if (asked === undefined || !output.includes('Callback server started') || wasSent) continue
      wasSent = true
      await fetch(await world.userAt(asked))
    }
    const summary = output.slice(output.indexOf('=== SUMMARY ==='))
    expect(summary.match(/^[✓✗].*$/gm)).toEqual([
      '✓ authorization-server-metadata-endpoint: 2 passed, 0 failed',
      '✓ authorization-code-grant: 1 passed, 0 failed',
    ])
  },
  TIMEOUT_MS,
)
