import { afterEach, expect, it } from 'vitest'
import { issueCertificates } from '../../../src/operator/webhook/certificates.ts'
import { createSockets } from '../../support/sockets.ts'
import { kubeconfig, startApiServer } from '../../support/e2e/api-server.ts'
import { freePort } from '../../support/e2e/run.ts'
import { startWith } from '../../support/e2e/stopping/held.ts'

const sockets = createSockets()
afterEach(() => sockets.closeAll())

const DAY_MS = 86_400_000
it.each([
  ['of the future', DAY_MS, [503, 'no valid certificate']],
  ['of today', 0, [200, 'serving']],
  ['that is over', -91 * DAY_MS, [503, 'no valid certificate']],
])(
  'the readiness of extauth operator says what a certificate is: one %s',
  async (_what, laterMs, said) => {
    const [port, server] = await Promise.all([freePort(), startApiServer(sockets)])
    const { serving } = await issueCertificates({ names: ['127.0.0.1'], nowMs: Date.now() + laterMs })
    const files = { kubeconfig: kubeconfig(server.url), 'tls.crt': serving.cert, 'tls.key': serving.key.reveal() }
    const where = ['--kubeconfig', '{dir}/kubeconfig', '--namespace', 'n', '--operator-namespace', 'n']
    const webhook = ['--webhook-address', `127.0.0.1:${port}`, '--webhook-cert-dir', '{dir}']
    const rest = ['--admin', '127.0.0.1:0', '--log-format', 'json']
    const running = await startWith(sockets, files, ['operator', ...where, ...webhook, ...rest])
    const { admin } = (await running.line('listening')) as { admin: string }
    const readiness = async () => {
      const answer = await fetch(`${admin}/readiness`)
      const { detail } = (await answer.json()) as { detail: { caches: readonly string[]; webhook: string } }
      return [answer.status, detail.webhook, detail.caches]
    }
    await expect.poll(readiness, { timeout: 60_000 }).toEqual([...said, []])
  },
  90_000,
)
