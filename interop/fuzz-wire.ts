import { compareReaching } from '../test/support/proxy/reaching.ts'
import { createSockets } from '../test/support/sockets.ts'
import { compareAnswers } from '../test/support/wire/differential.ts'
import { compareRequests } from '../test/support/wire/differential-requests.ts'

// Compares random messages as this program and as Node's strict parser read them: npm run fuzz -- [answers|requests|reaching] [COUNT] [SEED]
// "reaching" sends requests through the whole proxy: nothing else reaches a backend. It is only run by its name.

const ROUND = 10_000

async function reaching(seed: number, count: number) {
  const sockets = createSockets()
  try {
    return await compareReaching(sockets, seed, count)
  } finally {
    await sockets.closeAll()
  }
}

const KINDS = { answers: compareAnswers, requests: compareRequests, reaching }
const isKind = (text: string | undefined): text is keyof typeof KINDS => text !== undefined && text in KINDS

const [first, ...rest] = process.argv.slice(2)
const kinds = isKind(first) ? [first] : (['answers', 'requests'] as const)
const [counted, seeded] = isKind(first) ? rest : [first, ...rest]
const count = Number(counted ?? 300_000)
const firstSeed = Number(seeded ?? Math.floor(Math.random() * 2 ** 31))

for (const kind of kinds)
  for (let done = 0, seed = firstSeed; done < count; done += ROUND, seed++) {
    const { differences, ...seen } = await KINDS[kind](seed, Math.min(ROUND, count - done))
    const figures = Object.entries(seen).map(([name, figure]) => `${figure} ${name}`)
    process.stdout.write(`${kind}, seed ${seed}: ${figures.join(', ')}, ${differences.length} different\n`)
    for (const difference of differences) process.stdout.write(`  ${difference}\n`)
    if (differences.length > 0) process.exitCode = 1
  }
