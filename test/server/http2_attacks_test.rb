# frozen_string_literal: true

require "test_helper"
require "server/server_helpers"
require "support/h2_attacks"

# Hostile clients of HTTP/2: the server ends their connections, serves others, and keeps nothing.
class Http2AttacksTest < Minitest::Test
  include ServerHelpers

  LARGE = "x" * 1_000_000
  APP = lambda do |env|
    [200, { "content-type" => "text/plain" }, [env["PATH_INFO"] == "/large" ? LARGE : "hello"]]
  end
  CONNECTIONS = 3
  # Seconds. The other clients send their requests in time, though this process carries out the attacks as well.
  LIMIT = 2

  H2Attacks.all.each_value do |attack|
    define_method("test_#{attack.name}") do
      serving(APP, lint: false, access_log: false, head_timeout: LIMIT, write_timeout: LIMIT, linger_timeout: 0.05) do
        attackers = Array.new(CONNECTIONS) { Thread.new { carry_out(attack) } }
        answers = Array.new(5) { Net::HTTP.get(URI("http://127.0.0.1:#{port}/")) }

        assert_equal ["hello"] * 5, answers
        assert_equal [:ended] * CONNECTIONS, attackers.map(&:value)
        until_statistics { |one| one.values_at(:connections, :running, :waiting) == [0, 0, 0] }
      end
    end
  end

  # @return [Symbol] :ended if the server has ended the connection
  def carry_out(attack)
    client = H2Attacks.new(connect)
    client.carry_out(attack, till: now + PATIENCE, breath: 0.001) # the server runs in this process
    now > @deadline ? :late : :ended
  ensure
    client&.close
  end

  def setup
    super
    @deadline = now + PATIENCE
  end
end
