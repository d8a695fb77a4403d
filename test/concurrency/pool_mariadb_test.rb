# frozen_string_literal: true

require_relative "support/loop_helpers"
require "support/private_mariadb"

# A pool of connections to a real MariaDB, by the gems trilogy and mysql2.
class PoolMariadbTest < Minitest::Test
  include Heddle::LoopHelpers

  DRIVERS = {
    "trilogy" => -> { Trilogy.new(socket: PrivateMariadb.shared.socket, username: "root") },
    "mysql2" => -> { Mysql2::Client.new(socket: PrivateMariadb.shared.socket, username: "root", as: :array) }
  }.freeze
  # Numbers of the connections that ask nothing or wait.
  OTHERS = "SELECT ID FROM information_schema.PROCESSLIST WHERE ID <> CONNECTION_ID() AND USER <> 'system user'"

  DRIVERS.each do |driver, open|
    define_method("test_those_of_#{driver}_that_the_server_closed_while_they_were_idle_are_not_handed_out") do
      in_loop_with(driver, open) do |admin|
        database = Heddle::Pool.new(max: 2, &open)
        all = Array.new(2) { database.acquire }
        all.each { |connection| database.release(connection) }
        kill_others(admin)

        assert_equal([1, 1], Array.new(2) { database.with { |connection| connection.query("SELECT 1").first.first } })
        assert_equal 2, database.statistics[:closed][:broken]
        database.close
      end
    end

    define_method("test_to_ask_whether_one_of_#{driver}_was_closed_lets_no_other_task_run") do
      in_loop_with(driver, open) do |connection|
        database = Heddle::Databases.driver(connection) # loads it now, which lets others run
        others = 0
        Heddle.async { others += 1 }

        assert_equal [true, 0], [database.alive?(connection), others]
      end
    end

    define_method("test_one_of_#{driver}_that_the_server_closed_in_use_goes_to_no_task_that_waits") do
      in_loop_with(driver, open) do |admin|
        database = Heddle::Pool.new(max: 1, &open)
        waiting = nil
        assert_raises(Trilogy::Error, Mysql2::Error) do
          database.with do |connection|
            kill_others(admin)
            waiting = Heddle.async { database.with { |other| other.query("SELECT 42").first.first } }
            turns until database.waiting == 1
            connection.query("SELECT 1")
          end
        end

        assert_equal 42, waiting.value
        database.close
      end
    end
  end

  private

  def in_loop_with(driver, open)
    skip "needs the program mariadbd (Debian package mariadb-server-core): bin/setup --system" unless
      PrivateMariadb.program
    skip "needs the gem #{driver}: bin/setup" if Gem::Specification.find_all_by_name(driver).empty?
    DRIVERS.each_key { |name| require name }
    in_loop do
      admin = open.call
      yield admin
    ensure
      admin&.close
    end
  end

  # Returns when they have ended.
  def kill_others(admin)
    admin.query(OTHERS).each { |number,| admin.query("KILL #{number}") }
    turns while admin.query(OTHERS).any?
  end
end
