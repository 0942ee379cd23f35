import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { chromium, type Browser, type Page } from 'playwright-core'

/** Debian's Chromium without a window: the same engine, and a page of its own takes a third of the time. */
const SHELL = '/usr/bin/chromium-headless-shell'
/** Best first; the others are where Debian and others put the whole browser. */
const PLACES = [SHELL, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome', '/snap/bin/chromium']
const HOW =
  'the tests in a real browser need Chromium; install it, as root on Debian: apt-get install chromium-headless-shell'

/** As long as an installation may take. */
export const CHROMIUM_START_MS = 300_000

const find = (): string | undefined => PLACES.find((place) => existsSync(place))

/** The system's Chromium, installed from Debian where it is missing and may be. Throws, saying how, where it may not. */
function executable(): string {
  const found = find()
  if (found !== undefined) return found
  if (process.getuid?.() === 0) {
    // Sequentially: test files run side by side, and apt-get gives up where another holds its lock.
    const lock = path.join(os.tmpdir(), 'extauth-chromium.lock')
    const script = `test -x ${SHELL} || { apt-get update && apt-get install -y --no-install-recommends chromium-headless-shell; }`
    spawnSync('flock', [lock, 'sh', '-c', script], { stdio: 'ignore', timeout: CHROMIUM_START_MS - 60_000 })
  }
  const installed = find()
  if (installed === undefined) throw new Error(HOW)
  return installed
}

/** A real browser without a screen. */
export function startChromium(): Promise<Browser> {
  const isRoot = process.getuid?.() === 0
  return chromium.launch({
    executablePath: executable(),
    // Chromium's sandbox does not start as root.
    args: [...(isRoot ? ['--no-sandbox'] : []), '--disable-dev-shm-usage', '--disable-gpu'],
    timeout: 60_000,
  })
}

const AXE = createRequire(import.meta.url).resolve('axe-core/axe.min.js')

interface AxeResult {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[]
}

/** What axe-core finds in the page as it is now. The page must be opened with `bypassCSP`, and with script. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
  if (!(await page.evaluate('"axe" in globalThis'))) await page.addScriptTag({ path: AXE })
  return page.evaluate(async () => {
    const { violations } = await (globalThis as unknown as { axe: { run(): Promise<AxeResult> } }).axe.run()
    return violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`)
  })
}
