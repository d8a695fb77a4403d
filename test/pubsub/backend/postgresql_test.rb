# frozen_string_literal: true

require_relative "support/machines"
require "support/private_postgresql"

# A real PostgreSQL gives messages their order.
class PubSubPostgresqlTest < Minitest::Test
  include BackendPromises

  def setup
    skip "needs PostgreSQL: bin/setup --system" unless PrivatePostgresql.programs
    skip "needs the gem pg: bin/setup" if Gem::Specification.find_all_by_name("pg").empty?
    require "pg"
    @backend_server = PrivatePostgresql.new("fsync" => "on")
  end

  def url = @backend_server.url

  def cut_connections = @backend_server.cut_connections("heddle pub/sub")

  def crash = @backend_server.restart

  def test_a_crash_without_fsync_is_a_reset_with_a_new_epoch
    @backend_server.stop
    @backend_server = PrivatePostgresql.new("fsync" => "off")
    one = machine
    before = one.publish("a")
    one.message
    crash
    after = one.publish_after_crash("b")

    refute_equal before[/\A[^:]+/], after[/\A[^:]+/]
    assert_nil one.message.first
  end

  # A forked process ends without a word to the server.
  def test_a_forked_process_leaves_the_connections_alone
    backend = Heddle::PubSub::Backend.new(url)
    Heddle::PubSub::History.open(1 << 20, 1024, 100, 300)
    first = backend.publish("room", "x")
    Process.wait(fork { exit(0) })

    assert_equal offset(first) + 1, offset(backend.publish("room", "y"))
    pg = @backend_server.connect
    open = pg.exec("SELECT pid FROM pg_stat_activity WHERE application_name = 'heddle pub/sub'")

    assert_equal 1, open.ntuples
    pg.close
  end

  # It has its own database, and no other right.
  def test_an_ordinary_user_is_enough_and_a_wrong_password_is_said_without_it
    pg = @backend_server.connect
    pg.exec("CREATE ROLE app LOGIN PASSWORD 'right'")
    pg.exec("CREATE DATABASE app OWNER app")
    rules = "local app app scram-sha-256\nlocal all all trust\n"
    File.write(File.join(@backend_server.folder, "data/pg_hba.conf"), rules)
    pg.exec("SELECT pg_reload_conf()")
    url = "postgresql://app:%s@/app?host=#{@backend_server.folder}"
    refused = refusal_of(format(url, "wr0ng"))

    assert_match(/password authentication failed for user "app"/, refused)
    refute_includes refused, "wr0ng"
    backend = Heddle::PubSub::Backend.new(format(url, "right"))
    Heddle::PubSub::History.open(1 << 20, 1024, 100, 300)

    assert_equal 1, offset(backend.publish("room", "x"))
  ensure
    pg&.close
  end

  # The server reads its rules anew soon.
  def refusal_of(url)
    loop { Heddle::PubSub::Backend.new(url).connect.close }
  rescue Heddle::PubSub::Backend::Lost => e
    e.message
  end

  def test_the_table_keeps_no_more_than_it_should
    backend = Heddle::PubSub::Backend.new(url, stored: 100)
    Heddle::PubSub::History.open(1 << 20, 1024, 100, 300)
    300.times { |i| backend.publish("room", i.to_s) }
    pg = @backend_server.connect

    assert_operator pg.exec("SELECT count(*) FROM heddle_pubsub_messages").getvalue(0, 0).to_i, :<=, 200
    pg.close
  end
end
