# frozen_string_literal: true

# Prints what a Rails application is like without the gem, and in processes that load the gem and don't serve: a line of
# JSON for each. Each is a child of this process, so that all have their libraries at the same addresses.
require "rails"
require "active_record/railtie"
require "active_job/railtie"
require "rails/command"
require "json"
require "support/import_tables"

LIBRARY = File.expand_path("../../lib", __dir__)
KINDS = {
  "runner" => -> {}, "console" => -> { require "rails/commands/console/console_command" },
  "Sidekiq" => -> { Object.const_set(:Sidekiq, Module.new).const_set(:CLI, Class.new) },
  "jobs" => -> { Object.const_set(:SolidQueue, Module.new).const_set(:Cli, Class.new) }
}.freeze

def application
  Class.new(Rails::Application) do
    config.load_defaults Rails::VERSION::STRING.to_f
    config.eager_load = false
    config.logger = Logger.new(nil)
    config.root = __dir__
    def self.name = "Outside"
  end
end

def state
  pool = ActiveRecord::ConnectionAdapters::ConnectionPool
  tables = ImportTables.read.reject { |path, _| path.end_with?("/heddle.so") }
  { level: ActiveSupport::IsolatedExecutionState.isolation_level, tables: tables.hash,
    core: ImportTables.core(%w[Enumerator Fiber IO Kernel Mutex Process Signal Thread Timeout], LIBRARY),
    pool: [pool, pool::Queue].map { |one| one.ancestors.map(&:to_s) },
    database: ActiveRecord::Base.connection_db_config.configuration_hash, size: ActiveRecord::Base.connection_pool.size,
    executor: ActiveRecord.async_query_executor }
end

{ "without" => -> {}, **KINDS }.each do |kind, load_kind|
  Process.wait(fork do
    load_kind.call
    require "heddle" unless kind == "without"
    application.initialize!
    puts JSON.generate([kind, state])
    $stdout.flush
    exit!(0)
  end)
  exit(1) unless Process.last_status.success?
end
