# frozen_string_literal: true

# test: long

require_relative "support/machines"
require "support/private_postgresql"

# A real PostgreSQL gives messages their order: one for all tests, since copying its data costs more than most of them.
class PubSubPostgresqlConnectionTest < Minitest::Test
  include BackendPromises

  class << self
    # @return [PrivatePostgresql] the one that runs; a test may have stopped the one before
    def shared
      return @shared if @shared&.folder

      @shared = PrivatePostgresql.new("fsync" => "on").tap { |server| Minitest.after_run { server.stop } }
    end

    def shared?(server) = server.equal?(@shared)
  end

  def setup
    skip "needs PostgreSQL: bin/setup --system" unless PrivatePostgresql.programs
    skip "needs the gem pg: bin/setup" if Gem::Specification.find_all_by_name("pg").empty?
    require "pg"
    @backend_server = self.class.shared
    cut_connections
    execute("DROP TABLE IF EXISTS heddle_pubsub, heddle_pubsub_messages")
  end

  # What a test has started for itself is stopped with its machines.
  def teardown
    @backend_server = nil if self.class.shared?(@backend_server)
    super
  end

  def url = @backend_server.url

  def cut_connections = @backend_server.cut_connections("heddle pub/sub")

  def crash = @backend_server.restart

  def test_a_crash_without_fsync_is_a_reset_with_a_new_epoch
    @backend_server = PrivatePostgresql.new("fsync" => "off")
    one = machine
    before = one.publish("a")
    one.message
    crash
    after = one.publish_after_crash("b")

    refute_equal before[/\A[^:]+/], after[/\A[^:]+/]
    assert_nil one.message.first
  end

  # Every role of the database may listen and notify.
  def test_a_role_without_rights_reads_and_forges_no_message
    one = machine
    positions = [one.publish("a")]
    stranger = @backend_server.connect
    stranger.exec("CREATE ROLE stranger")
    stranger.exec("SET ROLE stranger")
    stranger.exec("LISTEN heddle_pubsub")
    positions << one.publish("secret")
    heard = nil

    assert stranger.wait_for_notify(60) { |_, _, payload| heard = payload.to_s }
    assert_empty heard
    assert_raises(PG::InsufficientPrivilege) { stranger.exec("SELECT * FROM heddle_pubsub_messages") }
    # of the epoch, the next offset and a message of the topic; of an offset far ahead; of no form
    ["%s 3 AAAABHJvb20AAAABeA==", "%s 99 ", "hello", ""].each do |text|
      stranger.exec_params("SELECT pg_notify('heddle_pubsub', $1)", [format(text, positions.last[/\A[^:]+/])])
    end
    positions << one.publish("b")

    assert_equal %w[a secret b].zip(positions), Array.new(3) { one.message }
    assert_equal offset(positions[1]) + 1, offset(positions[2])
  ensure
    stranger&.close
  end

  # A follower tries again and again, for example while its role may not create the tables.
  def test_an_attempt_that_fails_after_it_has_connected_leaves_no_connection
    others = Heddle::PubSub::Backend::PostgresqlConnection.open.keys
    2.times do
      assert_raises(Heddle::PubSub::Backend::LostError) do
        Heddle::PubSub::Backend.new("#{url}&options=-c%20default_transaction_read_only%3Don").connect
      end
    end

    assert_empty Heddle::PubSub::Backend::PostgresqlConnection.open.keys - others
  end

  # One that is the last, and one before it.
  def test_deleted_rows_are_a_reset
    first = machine.publish("a")
    deleted = %w[b c].map { |data| @machines.first.publish(data) }
    execute("DELETE FROM heddle_pubsub_messages WHERE number = #{offset(deleted.last)}")

    assert_equal [nil, deleted.last], machine("room", first).message
    last = @machines.first.publish("d")
    execute("DELETE FROM heddle_pubsub_messages WHERE number = #{offset(deleted.first)}")

    assert_nil machine("room", first).message.first
    assert_equal ["d", last], machine("room", deleted.last).message
  end

  def execute(statement)
    pg = @backend_server.connect
    pg.exec(statement)
  ensure
    pg&.close
  end

  def test_a_deleted_state_is_a_reset_with_a_new_epoch
    one = machine
    before = one.publish("a")
    one.message
    execute("DELETE FROM heddle_pubsub")
    after = one.publish("b")

    assert_nil one.message.first
    refute_equal before[/\A[^:]+/], after[/\A[^:]+/]
  end

  # The numbers continue after them: a gap for subscribers.
  def test_rows_of_another_program_are_a_reset_and_no_end
    one = machine
    first = one.publish("a")
    execute(<<~SQL)
      INSERT INTO heddle_pubsub_messages (number, epoch, publisher, batch, place, topic, data)
      SELECT #{offset(first)} + n, 'epoch ' || n, 'x', n, 2, 'room', '' FROM generate_series(1, 3) AS n
    SQL
    last = one.publish("b")
    messages = Array.new(2) { one.message }
    one.publish("c") # the reset may stand for all that came before it

    assert_equal offset(first) + 4, offset(last)
    assert_equal ["a", nil], messages.map(&:first)
    assert_in_order (messages + one.messages_until("c")).map(&:last)
  end

  # They are above the count, so nothing is lost before the numbers come to them, or ever.
  def test_rows_of_another_program_far_above_hide_no_message
    one = machine
    first = one.publish("a")
    [offset(first) + 1_000, (2**63) - 1].each do |number|
      execute("INSERT INTO heddle_pubsub_messages (number, epoch, publisher, batch, place, topic, data) " \
              "VALUES (#{number}, 'x', 'x', #{number}, 2, 'room', '')")
    end
    later = machine("room", first)
    expected = %w[b c].map { |data| [data, one.publish(data)] }

    assert_equal [["a", first], *expected], one.messages_until("c")
    assert_equal expected, later.messages_until("c")
    assert_equal offset(first) + 2, offset(expected.last.last)
  end

  # The application's transaction is of another connection.
  def test_a_transaction_that_is_rolled_back_takes_no_message_back
    one = machine
    one.publish("before") # it listens from here on
    backend = Heddle::PubSub::Backend.new(url)
    pg = @backend_server.connect
    assert_raises(ZeroDivisionError) { pg.transaction { backend.publish("room", "in it") && 1 / 0 } }
    open = pg.transaction { backend.publish("room", "in another one") && one.messages_until("in another one") }

    assert_equal ["before", "in it", "in another one"], open.map(&:first)
  ensure
    pg&.close
  end

  # A forked process ends without sending anything to the server.
  def test_a_forked_process_leaves_the_connections_alone
    backend = Heddle::PubSub::Backend.new(url)
    Heddle::PubSub::History.open(1 << 20, 100, 300)
    first = backend.publish("room", "x")
    Process.wait(fork { exit(0) })

    assert_equal offset(first) + 1, offset(backend.publish("room", "y"))
    pg = @backend_server.connect
    open = pg.exec("SELECT pid FROM pg_stat_activity WHERE application_name = 'heddle pub/sub'")

    assert_equal 1, open.ntuples
    pg.close
  end

  def test_process_can_fork_while_a_connection_is_lost
    connection = Heddle::PubSub::Backend.new(url).connect
    cut_connections
    assert_raises(Heddle::PubSub::Backend::LostError) { connection.open }
    Process.wait(fork { exit!(0) })

    assert_predicate Process.last_status, :success?
  ensure
    connection&.close
  end

  # It has its own database, and no other right.
  def test_an_ordinary_user_is_enough_and_a_wrong_password_is_said_without_it
    @backend_server = PrivatePostgresql.new
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
    Heddle::PubSub::History.open(1 << 20, 100, 300)

    assert_equal 1, offset(backend.publish("room", "x"))
  ensure
    pg&.close
  end

  # The server soon reloads its rules.
  def refusal_of(url)
    loop { Heddle::PubSub::Backend.new(url).connect.close }
  rescue Heddle::PubSub::Backend::LostError => e
    e.message
  end

  def test_the_table_keeps_no_more_than_it_should
    backend = Heddle::PubSub::Backend.new(url, stored: 100)
    Heddle::PubSub::History.open(1 << 20, 100, 300)
    300.times { |i| backend.publish("room", i.to_s) }
    pg = @backend_server.connect

    assert_operator pg.exec("SELECT count(*) FROM heddle_pubsub_messages").getvalue(0, 0).to_i, :<=, 200
    pg.close
  end
end
