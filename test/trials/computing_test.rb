# frozen_string_literal: true

# test: smoke

require_relative "support/trial"

# Native code that computes for long, of gems and of Ruby's own library, beside a fiber that only wants its turns.
class TrialComputingTest < Minitest::Test
  include Trial

  WORK = {
    "bcrypt" => ['require "bcrypt"', 'BCrypt::Password.create("secret", cost: 11) == "secret"'],
    "openssl" => ['require "openssl"', "OpenSSL::PKey::RSA.new(2048).private?"],
    "zlib" => ['require "zlib"', "Zlib::Deflate.deflate(TEXT).bytesize < TEXT.bytesize"]
  }.freeze

  # As many as there are cores, and one more.
  WORK.each do |name, (library, work)|
    define_method("test_others_have_turns_beside_#{name}") do
      need_gem "bcrypt" if name == "bcrypt"
      output = protected_program(<<~RUBY)
        require "etc"
        #{library}
        TEXT = Random.new(1).bytes(3_000_000) + "text" * 2_000_000
        Heddle.run do
          tasks = Array.new(Etc.nprocessors + 1) { Heddle.async { #{work} } }
          turns = 0
          until tasks.all?(&:ended?)
            Fiber.scheduler.yield
            turns += 1
          end
          p tasks.map(&:value).uniq, turns > 100
        end
      RUBY

      assert_equal "[true]\ntrue\n", output
    end
  end
end
