# frozen_string_literal: true

# test: long

require "test_helper"
require "pubsub/backend/support/private_redis"
require "support/private_postgresql"
require_relative "support/cable_tests"

class CableOnRails81Test < Minitest::Test
  include CableServerTests

  def version = "8.1"

  # With the adapter of Heddle and a backend: there `config.heddle.cable` changes nothing.
  def assert_two_pumas_share_broadcasts_through(url)
    puma = [RbConfig.ruby, "-I#{ROOT}/lib", "-e", 'load Gem.activate_bin_path("puma", "puma")', "--",
            "-t", "2:2", "-b", "tcp://127.0.0.1:0", APPLICATION]
    environment = self.environment.merge("CABLE_URL" => url)
    pumas = Array.new(2) { ServedProcess.new(puma, environment:, folder: FOLDER) }
    assert_broadcasts_reach(pumas)
  ensure
    pumas&.each(&:kill)
  end

  def test_processes_of_puma_share_broadcasts_through_a_redis
    redis = PrivateRedis.new(need_program("redis-server"))
    assert_two_pumas_share_broadcasts_through(redis.url)
  ensure
    redis&.stop
  end

  def test_processes_of_puma_share_broadcasts_through_a_postgresql
    skip "needs PostgreSQL: bin/setup --system" unless PrivatePostgresql.programs
    require "pg"
    assert_two_pumas_share_broadcasts_through(PrivatePostgresql.shared.url)
  end
end

class CableOnRails72Test < Minitest::Test
  include CableTests

  def version = "7.2"
end
