'use strict'
var version = require('./node-version.cjs')
if (!version.isNewEnough()) {
  console.error(
    version.sentence + ' In a checkout run "npm ci" and start it through npm ("npm start", "npm run extauth -- …").',
  )
  process.exit(2)
}
