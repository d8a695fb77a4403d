# frozen_string_literal: true

require "test_helper"
require "examples/served_example"
require "support/private_postgresql"
require "json"

# Tasks that wait for one of Active Record's connections, to a real PostgreSQL.
class RailsConnectionQueueTest < Minitest::Test
  PROGRAM = File.expand_path("connection_queue_program.rb", __dir__)
  LIB = File.expand_path("../../lib", __dir__)
  private_constant :PROGRAM, :LIB

  def setup
    skip "needs the gems of examples/rails_postgresql: bin/setup" unless ServedExample.gems?("rails_postgresql")
    need_program("postgres") unless PrivatePostgresql.programs
    require "pg"
  end

  def test_waiters_are_counted_served_in_order_and_cancellable_and_transactions_stay_separate
    environment = ServedExample.bundle("rails_postgresql").merge("DATABASE_URL" => PrivatePostgresql.shared.url)
    output, status = Open3.capture2e(environment, RbConfig.ruby, "-I", LIB, PROGRAM)

    assert_predicate status, :success?, output
    seen = JSON.parse(output.lines.last)

    assert_equal (1..8).to_a, seen["waiting"].first(8)
    assert_equal [1, 2, 4, 5, 7], seen["order"]
    assert_equal 0, seen["left_waiting"]
    assert seen["served"]
    assert_equal 2, seen["served_after_kill"]
    assert_equal (2..20).step(2).to_h { |number| [number.to_s, 2] }, seen["kept"], "a transaction belongs to its task"
  end
end
