# frozen_string_literal: true

require "bundler/setup"
require "digest"
require "json"
require "newrelic_rpm"
require "roda"
require "sentry-ruby"
require "sequel"
require "sidekiq"

DB = Sequel.sqlite(File.join(__dir__, "shop.sqlite3"), max_connections: 8, timeout: 5_000)
DB.create_table?(:items) do
  primary_key :id
  String :name, null: false
end

# Writes what it is asked to send into a file.
class FileTransport < Sentry::Transport
  def send_data(data, _options = {}) = File.write(ENV.fetch("SENTRY_FILE"), "#{data.chomp}\n", mode: "ab")
end

Sentry.init do |config|
  config.dsn = "http://public@127.0.0.1:9/1"
  config.transport.transport_class = FileTransport
  config.sdk_logger = Logger.new(nil)
end

# Writes what the process is like in which jobs run.
class ItemJob
  include Sidekiq::Job

  def perform(path)
    File.write("#{path}.new", JSON.generate(items: DB[:items].count >= 0, concurrency: Sequel.const_defined?(:Fiber) &&
                                            DB.pool.class.name, scheduler: Fiber.current_scheduler.class.name))
    File.rename("#{path}.new", path)
  end
end

# The API.
class Shop < Roda
  plugin :json
  plugin :json_parser, content_type_regexp: %r{\Aapplication/json\b}i
  plugin :all_verbs
  plugin :not_found do
    { error: "not found" }
  end

  route do |r|
    r.root { { hello: "world" } }
    r.get("up") { "up" }
    r.get("broken") { raise "on purpose" }
    r.get("slow") do
      sleep 120
      { slow: true }
    end
    r.get("named", String) do |name|
      NewRelic::Agent.set_transaction_name(name)
      Sentry.set_tags(name:)
      sleep 0.2
      { transaction: NewRelic::Agent.get_transaction_name.to_s.split("/").last, tag: Sentry.get_current_scope.tags[:name] }
    end
    r.post("jobs") { { id: ItemJob.perform_async(r.params["path"]).is_a?(String) } }
    r.post("digest") { { size: r.body.read.then { |text| [text.bytesize, Digest::SHA256.hexdigest(text)] } } }
    r.on("items") do
      r.get(true) { { count: DB[:items].where(name: r.params["name"]).count } }
      r.post("undone") do
        DB.transaction do
          DB[:items].insert(name: r.params["name"])
          raise Sequel::Rollback
        end
        { undone: true }
      end
      r.post(true) do
        id = DB.transaction { DB[:items].insert(name: r.params["name"]) }
        response.status = 201
        { name: DB[:items].first(id:)[:name] }
      end
    end
  end
end
