# frozen_string_literal: true

require "bcrypt"

proves_others_run("BCrypt::Password.create") { |number| BCrypt::Password.create("secret #{number}", cost: 8) }
hash = BCrypt::Password.create("secret", cost: 4)
proves("8 tasks verify passwords",
       clients { |number| hash == (number.even? ? "secret" : "other") } == Array.new(CLIENTS, &:even?))
