import { writeFileSync, appendFileSync } from 'node:fs'
import { startControlPlane } from './support/control-plane.ts'
import { connect, installDefinitions, runOperator } from './support/operator-rig.ts'
const plane = await startControlPlane()
writeFileSync('/tmp/h-kube/kubeconfig.path', plane.kubeconfigPath)
const connection = connect(plane)
await installDefinitions(connection.client)
const line = (level: string) => (fields: unknown, message?: string) => appendFileSync('/tmp/h-kube/operator.log', JSON.stringify({ level, ...(fields as object), message }) + '\n')
const log = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') }
const operator = await runOperator(connection.client, { webhook: true, log: log as never })
writeFileSync('/tmp/h-kube/ready', 'yes')
const stop = async () => { await operator.close(); await connection.close(); await plane.close(); process.exit(0) }
process.on('SIGTERM', () => void stop())
process.on('SIGINT', () => void stop())
setTimeout(() => void stop(), 80 * 60_000)
