# frozen_string_literal: true

require "argon2"

puts "noted: hashing holds Ruby's lock"
hash = Argon2::Password.create("secret", t_cost: 1, m_cost: 8)
proves("8 tasks verify passwords", clients do |number|
  Argon2::Password.verify_password(number.even? ? "secret" : "other", hash)
end ==
                                   Array.new(CLIENTS, &:even?))
