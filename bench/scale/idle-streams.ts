import { pause } from '../load/pace.ts'
import { cpuOf, type Generator, memoryOf, openFilesLimit, startProxyCommand } from '../processes.ts'

const MIB = 1024 * 1024
/** Setup of the first streams is excluded. */
const STREAMS_BEFORE = 100
const WATCHED_MS = 10_000
/** File descriptors of the proxy beside those of the streams. */
const OTHER_FILES = 200
/** The most that an idle stream may hold, in KiB. */
const MOST_KIB = 32

/** Memory of idle event streams, at most as many as file descriptors allow. Returns a sentence. */
export async function runIdleStreams(
  generator: Generator,
  backend: string,
  { streams: wanted, restMs }: { readonly streams: number; readonly restMs: number },
): Promise<string> {
  // Each has a connection on either side.
  const count = Math.min(wanted, Math.floor((openFilesLimit() - OTHER_FILES) / 2))
  const proxy = await startProxyCommand({ backend, types: ['bearerToken'] })
  const url = `${proxy.url}/bearerToken/idle`
  const held = async (streams: number): Promise<number> => {
    await generator.ask({ kind: 'open-idle', url, count: streams })
    await pause(restMs)
    return memoryOf(proxy.pid)
  }
  try {
    const before = await held(STREAMS_BEFORE)
    const after = await held(count)
    const cpuBefore = cpuOf(proxy.pid)
    await pause(WATCHED_MS)
    const share = (cpuOf(proxy.pid) - cpuBefore) / 1e6 / WATCHED_MS
    const kib = (after - before) / 1024 / (count - STREAMS_BEFORE)
    return `**${count} idle event streams:** ${kib.toFixed(1)} KiB each (at most ${MOST_KIB}), ${(after / MIB).toFixed(0)} MiB with all of them; ${(share * 100).toFixed(1)} % of a core while nothing comes.`
  } finally {
    await generator.ask({ kind: 'close-idle', url })
    await proxy.stop()
  }
}
