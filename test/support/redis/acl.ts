/** The rules of the user in docs/redis.md. */
export const APPLICATION_RULES = [
  '~extauth:* &extauth:*',
  '+ping +role +select',
  '+get +set +getdel +del +eval +evalsha',
  '+getrange +pexpire +pttl +time +zadd +zcard +zrange +zrem +zremrangebyscore +zscore',
  '+publish +subscribe +unsubscribe +wait',
].join(' ')
