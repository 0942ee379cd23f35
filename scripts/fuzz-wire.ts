import { compareAnswers } from '../test/wire/differential.ts'

// Compares random answers as this program and as Node's strict parser read them: npm run fuzz -- [COUNT] [SEED]

const ROUND = 10_000
const count = Number(process.argv[2] ?? 300_000)
const firstSeed = Number(process.argv[3] ?? Math.floor(Math.random() * 2 ** 31))

for (let done = 0, seed = firstSeed; done < count; done += ROUND, seed++) {
  const { whole, refused, cut, differences } = await compareAnswers(seed, Math.min(ROUND, count - done))
  process.stdout.write(
    `seed ${seed}: ${whole} whole, ${refused} refused, ${cut} cut, ${differences.length} different\n`,
  )
  for (const difference of differences) process.stdout.write(`  ${difference}\n`)
  if (differences.length > 0) process.exitCode = 1
}
