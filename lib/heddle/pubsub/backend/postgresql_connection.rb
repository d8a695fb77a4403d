# frozen_string_literal: true

require "pg"

module Heddle
  module PubSub
    class Backend
      # A connection to PostgreSQL (12 or newer). One table contains all messages. A second table has a single row with
      # the epoch and the number of messages. The lock of this row makes offsets rise in the order of commits.
      # Notifications on one channel wake all readers. Every role of a database may send notifications, so they have no
      # content and are not trusted: messages are read from the table, which has permissions.
      #
      # A failover, a restore or, without fsync, a restart may lose messages. Their offsets are then assigned again, so
      # a new epoch begins.
      class PostgresqlConnection
        # Maximum seconds for connecting, and for each statement.
        TIMEOUT = 5
        # Number of published batches between two deletions of old messages.
        TRIM_INTERVAL = 64
        # Heddle ignores other programs' rows with this number or a higher one. Otherwise its own next messages would
        # need even higher numbers.
        NUMBER_LIMIT = 10**15
        private_constant :TIMEOUT, :TRIM_INTERVAL, :NUMBER_LIMIT
        # The open connections of this process. A forked process must not end their sessions.
        @open = {}.compare_by_identity

        class << self
          attr_reader :open

          # Called in a forked process. Replaces the inherited sockets, so that libpq can't end the parent's sessions.
          # @return [void]
          def abandon
            @open.each_key do |pg|
              IO.for_fd(pg.socket, autoclose: false).reopen(File::NULL, "r+")
            rescue PG::Error
              nil # the connection is lost, so libpq has closed the socket
            end
            @open.clear
          end
        end

        # Prepended to the singleton class of Process: see Process._fork.
        module AbandonInChild
          def _fork = super.tap { |pid| PostgresqlConnection.abandon if pid.zero? }
        end
        private_constant :AbandonInChild
        Process.singleton_class.prepend(AbandonInChild)

        # @param url [String]
        # @param name [String] the name of the table with the single row, and of the channel
        # @param stored [Integer] number of messages to keep in the table
        # @raise [LostError]
        def initialize(url, name, stored)
          @name = name
          @table = "#{name}_messages"
          @stored = stored
          @batches = 0
          @behind = true # whether `read` must query the table before it waits for a notification
          translate { connect(url) }
        rescue Exception
          close
          raise
        end

        # Begins a new epoch if the server may have gone back to earlier data, in which messages are missing.
        # @return [State]
        def open
          translate do
            @pg.exec_params(<<~SQL, [identity, Backend.new_epoch])
              UPDATE #{@name} SET epoch = $2, identity = $1, floor = count WHERE identity <> $1
            SQL
            insert_state if (row = select_state).nil?
            row ||= select_state
            @behind = true # notifications before LISTEN were missed
            @epoch = row["epoch"]
            State.new(epoch: @epoch, count: Integer(row["count"]), oldest: Integer(row["oldest"]))
          end
        end

        # Publishes a batch of messages.
        # @param epoch [String]
        # @param publisher [String] the publisher's id
        # @param number [Integer] the batch's number
        # @param messages [Array<Array(String, String)>] topic and data of each message
        # @return [Integer] the offset of the first message
        # @raise [EpochChangedError]
        def publish(epoch, publisher, number, messages)
          values = [epoch, messages.size, publisher, number, *messages.transpose.map { |all| @array.encode(all) }]
          count = translate { @pg.exec_params(publish_statement, values).first }
          raise EpochChangedError unless count

          trim
          Integer(count["count"]) - messages.size + 1
        rescue PG::UniqueViolation # the batch was sent before, and the reply was lost; or another program wrote rows
          find_batch(publisher, number) || pass_foreign_rows
        end

        # Reads the next messages. Waits for one if there is none.
        # @param after [Integer] the offset to read after
        # @param most [Integer] maximum number of messages
        # @param wait [Numeric] maximum seconds to wait
        # @param _counted [Integer] not needed, because one query finds every stored message after `after`
        # @return [Array<Stored>] in the order of offsets; empty: no message came within `wait`
        def read(after, most, wait, _counted)
          translate do
            listen
            stored = @behind ? select(after, most) : []
            if stored.empty? && @pg.wait_for_notify(wait)
              nil while @pg.notifies # one query reads the messages of all notifications
              stored = select(after, most)
            end
            @behind = stored.size == most
            stored
          end
        end

        # @return [void]
        def close
          PostgresqlConnection.open.delete(@pg)
          @pg&.close
        rescue PG::Error
          nil # already closed
        end

        private

        def connect(url)
          @pg = PG.connect(url, connect_timeout: TIMEOUT, keepalives_idle: 10, keepalives_interval: 5,
                                tcp_user_timeout: TIMEOUT * 2000, fallback_application_name: "heddle pub/sub")
          PostgresqlConnection.open[@pg] = true
          @array = PG::TextEncoder::Array.new(elements_type: PG::TextEncoder::Bytea.new)
          @pg.set_notice_processor { nil }
          @pg.exec("SET statement_timeout = #{TIMEOUT * 1000}")
          @pg.exec("SET synchronous_commit = on") if @pg.exec("SHOW synchronous_commit").getvalue(0, 0) == "off"
          make_tables
        end

        def make_tables
          return unless @pg.exec("SELECT to_regclass('#{@name}') IS NULL").getvalue(0, 0) == "t"

          @pg.transaction do
            @pg.exec_params("SELECT pg_advisory_xact_lock(hashtext($1))", [@name])
            @pg.exec(<<~SQL)
              CREATE TABLE IF NOT EXISTS #{@table} (number bigint PRIMARY KEY, epoch text NOT NULL,
                publisher text NOT NULL, batch bigint NOT NULL, place bigint NOT NULL, topic bytea NOT NULL,
                data bytea NOT NULL);
              CREATE UNIQUE INDEX IF NOT EXISTS #{@table}_batch ON #{@table} (publisher, batch) WHERE place = 1;
              CREATE TABLE IF NOT EXISTS #{@name} (single boolean PRIMARY KEY DEFAULT true CHECK (single),
                epoch text NOT NULL, identity text NOT NULL, count bigint NOT NULL, floor bigint NOT NULL);
            SQL
            insert_state
          end
        end

        def insert_state
          @pg.exec_params(<<~SQL, [Backend.new_epoch, identity])
            INSERT INTO #{@name} (epoch, identity, count, floor)
            SELECT $1, $2, count, count
            FROM (SELECT coalesce(max(number), 0) AS count FROM #{@table} WHERE number < #{NUMBER_LIMIT}) AS last
            ON CONFLICT DO NOTHING
          SQL
        end

        def select_state
          @pg.exec(<<~SQL).first
            SELECT epoch, count, greatest(floor + 1, coalesce((SELECT min(number) FROM #{@table}), count + 1)) AS oldest
            FROM #{@name}
          SQL
        end

        # Returns a value that changes when the server may have gone back to earlier data: after a change to another
        # cluster, the promotion of a standby, or a restart without fsync.
        def identity
          @identity ||= [@pg.exec(<<~SQL).getvalue(0, 0), (started unless fsync?)].compact.join("/")
            SELECT (SELECT system_identifier FROM pg_control_system()) || '/' ||
                   (SELECT timeline_id FROM pg_control_checkpoint())
          SQL
        end

        def started = @pg.exec("SELECT extract(epoch FROM pg_postmaster_start_time())").getvalue(0, 0)

        def fsync? = @pg.exec("SHOW fsync").getvalue(0, 0) == "on"

        def publish_statement
          @publish_statement ||= <<~SQL
            WITH state AS (UPDATE #{@name} SET count = count + $2::bigint WHERE epoch = $1 RETURNING count),
            stored AS (INSERT INTO #{@table} (number, epoch, publisher, batch, place, topic, data)
              SELECT state.count - $2::bigint + place, $1, $3, $4::bigint, place, topic, data
              FROM state, unnest($5::bytea[], $6::bytea[]) WITH ORDINALITY AS messages (topic, data, place))
            SELECT count, pg_notify('#{@name}', '') FROM state
          SQL
        end

        # Heddle's rows and the count change in one statement, so a row above the count is from another program. The
        # query omits such a row until the count has reached it. Then the follower skips it, because its epoch is not
        # Heddle's.
        def select(after, most)
          rows = @pg.exec_params(<<~SQL, [after, most], 1).values
            SELECT number, epoch, topic, data FROM #{@table}
            WHERE number > $1::bigint AND number <= (SELECT count FROM #{@name}) ORDER BY number LIMIT $2::bigint
          SQL
          rows.map do |number, epoch, topic, data|
            Stored.new(epoch: epoch.force_encoding(Encoding::UTF_8), offset: number.unpack1("q>"), topic:, data:)
          end
        end

        def listen
          return if @listening

          @pg.exec("LISTEN #{@name}")
          @listening = true
        end

        def find_batch(publisher, number)
          rows = translate do
            @pg.exec_params("SELECT number FROM #{@table} WHERE publisher = $1 AND batch = $2::bigint AND place = 1",
                            [publisher, number])
          end
          Integer(rows.getvalue(0, 0)) if rows.ntuples.positive?
        end

        # Called when another program has written rows with the next numbers. Increases the count, so that the next
        # batch gets the numbers after these rows.
        # @raise [LostError] always, so that the publisher tries again
        def pass_foreign_rows
          translate { @pg.exec(<<~SQL) }
            UPDATE #{@name} SET count = greatest(count, (SELECT max(number) FROM #{@table} WHERE number < #{NUMBER_LIMIT}))
          SQL
          raise LostError, "another program has written rows to the table #{@table}"
        end

        def trim
          return unless ((@batches += 1) % TRIM_INTERVAL).zero?

          translate do
            @pg.exec_params("DELETE FROM #{@table} WHERE number <= (SELECT count FROM #{@name}) - $1::bigint",
                            [@stored])
          end
        end

        def translate
          yield
        rescue PG::UniqueViolation
          raise
        rescue PG::Error, SystemCallError, IOError => e
          raise LostError, "#{e.message.strip} (#{e.class})"
        end
      end
    end
  end
end
