# frozen_string_literal: true

require "rbnacl"

key = RbNaCl::Random.random_bytes(32)
got = clients do |number|
  box = RbNaCl::SimpleBox.from_secret_key(key)
  text = number.to_s * 100_000
  box.decrypt(box.encrypt(text)) == text
end
proves("8 tasks encrypt and decrypt 100 kB each", got.all?)
