import { createHash, randomBytes } from 'node:crypto'
import { Agent, request } from 'node:http'

/** The outcome of concurrent requests. */
export interface CrowdVerdict {
  readonly right: number
  /** Answered with 502 because a kept connection died with them; a POST is not repeated. */
  readonly lost: number
  /** Violations, one line each. */
  readonly wrong: readonly string[]
}

const LIMIT_MS = 60_000

/** So many POSTs at once, each with a body of its own; each answer must be the one to its request. */
export async function askAtOnce(url: string, count: number, sizes = [0, 300, 20_000]): Promise<CrowdVerdict> {
  const agent = new Agent({ keepAlive: true })
  try {
    const asked = Array.from({ length: count }, (_, index) =>
      askOne(url, agent, index, sizes[index % sizes.length] ?? 0),
    )
    return sum(await Promise.all(asked))
  } finally {
    agent.destroy()
  }
}

/** Requests on connections that rested as long as the other side keeps them, give or take some milliseconds. */
export async function askAtTheLastMoment(url: string, restMs: number, lanes: number): Promise<CrowdVerdict> {
  const agent = new Agent({ keepAlive: true })
  try {
    const lane = async (index: number): Promise<readonly Verdict[]> => {
      const verdicts: Verdict[] = []
      for (let round = 0; round < 3; round++) {
        verdicts.push(await askOne(url, agent, index * 3 + round, 100))
        await new Promise((resolve) => setTimeout(resolve, restMs - 5 + (index % 10)))
      }
      return verdicts
    }
    const all = await Promise.all(Array.from({ length: lanes }, (_, index) => lane(index)))
    return sum(all.flat())
  } finally {
    agent.destroy()
  }
}

type Verdict = 'right' | 'lost' | { readonly wrong: string }

const sum = (verdicts: readonly Verdict[]): CrowdVerdict => ({
  right: verdicts.filter((one) => one === 'right').length,
  lost: verdicts.filter((one) => one === 'lost').length,
  wrong: verdicts.flatMap((one) => (typeof one === 'object' ? [one.wrong] : [])),
})

function askOne(url: string, agent: Agent, id: number, size: number): Promise<Verdict> {
  const body = randomBytes(size)
  const wanted = (id * 37) % 5000
  const got = `POST ${size} ${createHash('sha256').update(body).digest('hex')}`
  return new Promise((resolve) => {
    const wrong = (what: string): void => resolve({ wrong: `${url}, request ${id}: ${what}` })
    const asking = request(`${url}?bytes=${wanted}`, {
      agent,
      method: 'POST',
      headers: { 'x-id': String(id), 'content-type': 'application/octet-stream', 'content-length': size },
      timeout: LIMIT_MS,
    })
    asking.on('response', (answer) => {
      let bytes = 0
      answer.on('data', (data: Buffer) => (bytes += data.length))
      answer.on('error', () => wrong('the answer is torn'))
      answer.on('end', () => {
        const { headers, statusCode } = answer
        if (statusCode === 502) return resolve('lost')
        if (statusCode !== 200) return wrong(`status ${statusCode}`)
        if (headers['x-id'] !== String(id)) return wrong(`has the answer to request ${String(headers['x-id'])}`)
        if (headers['x-got'] !== got) return wrong('its body came as another')
        if (bytes !== wanted + 3) return wrong(`${bytes} bytes instead of ${wanted + 3}`)
        resolve('right')
      })
    })
    asking.on('timeout', () => asking.destroy(new Error('no answer')))
    asking.on('error', (error) => wrong(error.message))
    asking.end(body)
  })
}
