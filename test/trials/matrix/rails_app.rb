# frozen_string_literal: true

# The smallest application of Rails with a database, for gems that are part of one.
require "pg"

# Tables of its own: programs, and the same one with both Rubies, run at once.
SCHEMA = "run#{Process.pid}".freeze
PG.connect(ENV.fetch("MATRIX_POSTGRESQL")).tap { |pg| pg.exec("CREATE SCHEMA #{SCHEMA}") }.close
ENV["DATABASE_URL"] = "#{ENV.fetch("MATRIX_POSTGRESQL")}&pool=#{CLIENTS + 8}&schema_search_path=#{SCHEMA},public"
ENV["RAILS_ENV"] = "production"
ENV["SECRET_KEY_BASE_DUMMY"] = "1"
require "logger"
require "tmpdir"
require "rails"
require "active_record/railtie"
require "active_job/railtie"

# @param schema [Proc] makes the tables, as a migration does
# @yield [config] before the application starts
# @return [Class]
def rails_application(schema:)
  application = Class.new(Rails::Application) do
    config.root = Dir.mktmpdir
    config.eager_load = false
    config.logger = Logger.new(nil)
    config.active_support.isolation_level = :fiber
    yield config if block_given?
  end
  Object.const_set(:MatrixApplication, application)
  application.initialize!
  ActiveRecord::Schema.verbose = false
  ActiveRecord::Schema.define { instance_exec(&schema) }
  application
end

# @return [Proc] what a migration of a gem does
# @param gem [String]
# @param file [String] in the gem's folder
def migration_of(gem, file)
  path = File.join(Gem.loaded_specs.fetch(gem).full_gem_path, file)
  version = ActiveRecord::Migration.current_version
  source = File.read(path).gsub(/<%=.*?%>/m, "[#{version}]")
  source = source.sub(/< ActiveRecord::Migration\[+[\d.]+\]+/, "< ActiveRecord::Migration[#{version}]")
  name = source[/class (\w+)/, 1]
  lambda do |_schema = nil|
    Object.class_eval(source)
    Object.const_get(name).new.tap { |one| one.verbose = false if one.respond_to?(:verbose=) }.migrate(:up)
  end
end

# @return [Proc] what the schema of a gem does
def schema_of(gem, file)
  path = File.join(Gem.loaded_specs.fetch(gem).full_gem_path, file)
  -> { load(path) }
end
