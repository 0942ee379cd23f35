import { EXIT, type Io } from '../compose/index.ts'
import { carryStdio, type StdioWay } from '../compose/stdio/index.ts'
import type { OpenLog } from '../report/index.ts'
import { openBrowser } from './browser.ts'
import { loggedCommand } from './command.ts'
import { loginOptionsOf } from './options/login-options.ts'
import type { Parsed } from './options/options.ts'
import { STDIO_SPEC, type StdioOptions, stdioOptionsOf } from './options/stdio-options.ts'

/** `extauth stdio`: runs until its input ends, its output closes, or it is stopped. */
export const runStdio = loggedCommand(STDIO_SPEC, 'info', async ({ options: parsed, io, log }) => {
  const { headers, graceMs, ...options } = stdioOptionsOf(parsed)
  await carryStdio({
    way: wayOf(parsed, options, io, log),
    headers,
    graceMs,
    env: io.env,
    log,
    stop: io.stop,
    input: process.stdin,
    output: process.stdout,
    openBrowser: (url) => openBrowser(url, 'connect your account', io),
  })
  return EXIT.fine
})

function wayOf(
  parsed: Parsed,
  { url, caFile, tokenFile, hasLogin }: Pick<StdioOptions, 'url' | 'caFile' | 'tokenFile' | 'hasLogin'>,
  io: Io,
  log: OpenLog,
): StdioWay {
  if (url !== undefined) {
    const login = hasLogin ? () => loginOptionsOf(parsed, url, caFile, io, log) : undefined
    return { kind: 'url', url, caFile, tokenFile, login }
  }
  return {
    kind: 'route',
    tokenFile,
    sources: {
      configPaths: parsed.list('config'),
      route: parsed.text('route'),
      secretsDirectory: parsed.text('secrets-dir'),
      target: parsed.text('target'),
      externalAuth: parsed.text('external-auth'),
      callers: parsed.text('callers'),
      ignoreManifestCallers: parsed.flag('ignore-manifest-callers'),
      namespace: parsed.text('namespace'),
      apiGroup: parsed.text('api-group'),
      stsEndpoint: parsed.text('sts-endpoint'),
    },
  }
}
