# frozen_string_literal: true

require_relative "support/database_programs"
require "tmpdir"

# Tasks that write to the same file of SQLite by Sequel.
class SequelSqliteTest < Minitest::Test
  include DatabasePrograms

  # The connections of the first database are opened before Heddle knows Sequel, those of the second after it.
  PROGRAM = <<~'RUBY'
    require "sequel"
    first = Sequel.sqlite(ARGV[0], timeout: 3_000, max_connections: 2)
    Sequel.extension(:fiber_concurrency)
    first.create_table(:items) { String :name }
    require "heddle"
    Heddle.run { Heddle::Databases.install }
    [first, Sequel.sqlite(ARGV[0], timeout: 3_000, max_connections: 2)].each do |database|
      Heddle.run do
        begun = Heddle::Promise.new
        Heddle.async do
          database.transaction do
            database[:items].insert(name: "long")
            begun.resolve
            sleep 0.1
          end
        end
        begun.value
        database[:items].insert(name: "short")
      end
    end
    mine = Sequel.sqlite(ARGV[0], timeout: 10, after_connect: ->(one) { one.busy_handler { |count| count < 3 } })
    mine.transaction(mode: :immediate) do
      first[:items].count
      second = Sequel.sqlite(ARGV[0], after_connect: ->(one) { one.busy_handler { $asked = true; false } })
      second[:items].insert(name: "refused")
    rescue Sequel::DatabaseError
      puts "asked #{$asked}"
    end
    puts first[:items].select_map(:name).inspect
  RUBY

  def test_a_task_that_waits_for_the_files_lock_lets_its_holder_run
    need_gem "sequel"
    need_gem "sqlite3"
    Dir.mktmpdir do |folder|
      output, status = unprotected_program(PROGRAM, File.join(folder, "file.sqlite3"))

      assert_predicate status, :success?, output
      assert_equal ["asked true\n", "#{%w[long short long short].inspect}\n"], output.lines.last(2)
    end
  end
end
