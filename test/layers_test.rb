# frozen_string_literal: true

require "test_helper"
require_relative "../bin/support/layers"

# Includes, requires and constants point down the layers of docs/design.md only.
class LayersTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  BASE = %w[scheduler concurrency].freeze
  NET = ["net", *BASE].freeze
  HTTP = ["options", "http", "pubsub", *NET].freeze
  SERVED = %w[rack web_socket databases adaptations rails protection].freeze
  # The folders of lib/heddle, each with those that it may use beside itself and "events". Those of the extension:
  # bin/support/layers.rb.
  USES = {
    "events" => %w[],
    "options" => %w[],
    "selector" => %w[],
    "scheduler" => %w[selector concurrency offload async],
    "concurrency" => %w[scheduler],
    "protection" => ["offload", *BASE],
    "offload" => ["protection", *BASE],
    "preemption" => ["protection", *BASE],
    "net" => BASE,
    "pubsub" => NET,
    "http" => HTTP,
    "web_socket" => HTTP,
    "cable" => ["web_socket", *HTTP],
    "live" => ["web_socket", *HTTP],
    "async" => BASE,
    "adaptations" => ["async", *BASE],
    "databases" => ["adaptations", *BASE],
    # Raises the server's error, and becomes `heddle serve` in place of `rails server`.
    "rails" => ["options", "server", "databases", "adaptations", *BASE],
    "rack" => ["web_socket", "databases", *HTTP],
    "server" => [*SERVED, "offload", "selector", *HTTP],
    "cli" => [*SERVED, "server", "selector", *HTTP]
  }.freeze
  # Files beside the folders that belong to one.
  HOMES = { "event_stream" => "http",
            **%w[callback_report enable handoff stall stalls watch_thread].to_h { |file| [file, "protection"] } }.freeze
  # Files that put the parts together, and helpers of tests.
  PARTS = %w[runtime railtie capybara minitest rspec].freeze
  # What a constant at the top of Heddle belongs to, where that isn't the folder of its name.
  MODULES = { "PubSub" => "pubsub", "Pool" => "concurrency", "EventStream" => "http",
              **%w[CallbackReport Handoff Stall Stalls WatchThread].to_h { |name| [name, "protection"] } }.freeze

  def test_every_folder_of_the_extension_is_a_room
    folders = Dir.glob("**/*.c", base: "#{ROOT}/ext/heddle").map { |file| File.dirname(file) }.uniq - ["."]

    assert_equal Layers::ROOMS.keys.sort, folders.sort
  end

  def test_design_md_names_every_folder
    layers = File.read("#{ROOT}/docs/design.md")[/^## Layers\n.*?(?=^## )/m]
    folders = Dir["#{ROOT}/{ext,lib}/heddle/*/"].map { |path| File.basename(path) }.uniq - %w[native]

    assert_operator folders.size, :>, 10
    assert_empty(folders.reject { |name| layers.match?(/^[\w, ]*\b#{name}\b/) })
  end

  def test_includes_point_down
    wrong = sources("ext/heddle/**/*.{c,h}").flat_map do |file, text|
      node = file.delete_prefix("ext/heddle/").sub(/\.[ch]\z/, "")
      text.scan(%r{^#include "([\w/]+)/\w+\.h"}).flatten.uniq.filter_map do |other|
        "#{file} includes #{other}/" if Layers.up?(node, other)
      end
    end

    assert_empty wrong
  end

  # Each protocol hands the engine a table; http/http_ruby.c registers them.
  def test_the_engine_names_no_protocol
    named = sources("ext/heddle/http/{engine,exchange}*.{c,h}").flat_map do |file, text|
      code_of(text).scan(/\bheddle_(?:h1|h2|websocket|events)_\w+\(/).map { |word| "#{file}: #{word}" }
    end

    assert_empty named
  end

  def test_every_folder_of_ruby_is_in_the_table
    folders = Dir["#{ROOT}/lib/heddle/*/"].map { |path| File.basename(path) } - %w[native]

    assert_empty folders - USES.keys
    assert_empty USES.values.flatten - USES.keys
  end

  def test_requires_and_autoloads_point_down
    wrong = ruby_sources do |file, text, layer|
      text.scan(%r{^\s*(?:require|autoload :\w+,) "heddle/(\w+)}).flatten.uniq.filter_map do |other|
        other = HOMES.fetch(other, other)
        "#{file} requires heddle/#{other}" if up?(layer, other)
      end
    end

    assert_empty wrong
  end

  def test_constants_point_down
    modules = { **USES.keys.to_h { |layer| [camel(layer), layer] }, **MODULES }
    wrong = ruby_sources do |file, text, layer|
      code = text.gsub(/"(?:[^"#\n]|#(?!{))*"/, "")
      named = code.scan(/(?<![\w:.'"@])(?:Heddle::)?(#{modules.keys.join("|")})(?=::[A-Z]|\.[a-z])/).flatten.uniq
      named -= own_names(text)
      named.filter_map { |name| "#{file} names #{name}" if up?(layer, modules.fetch(name)) }
    end

    assert_empty wrong
  end

  def test_net_knows_no_http
    words = sources("ext/heddle/net/**/*.{c,h}").flat_map do |file, text|
      code_of(text).scan(%r{\bhttps?://|\bHTTP\b|"(?:GET|POST)}).map { |word| "#{file}: #{word}" }
    end

    assert_empty words
  end

  def test_rack_and_the_server_name_no_version_of_http
    named = sources("{lib/heddle/{rack,server}/**/*.rb,ext/heddle/rack/exchange.c}").flat_map do |file, text|
      code_of(text).scan(/\bH[12]::|\bh[12]_/).map { |word| "#{file}: #{word}" }
    end

    assert_empty named
  end

  private

  def sources(pattern)
    files = Dir.glob(pattern, base: ROOT)

    refute_empty files, pattern
    files.map { |file| [file, File.read(File.join(ROOT, file))] }
  end

  # Every file of lib/heddle that belongs to a folder of the table, with its text and that folder.
  def ruby_sources
    sources("lib/heddle/**/*.rb").flat_map do |file, text|
      name = file[%r{\Alib/heddle/(\w+)}, 1]
      layer = HOMES.fetch(name, name)
      USES.key?(layer) && !PARTS.include?(name) ? yield(file, code_of(text), layer) : []
    end
  end

  def up?(layer, other)
    USES.key?(other) && ![layer, "events"].include?(other) && !USES.fetch(layer).include?(other)
  end

  def camel(layer) = { "http" => "HTTP", "cli" => "CLI" }.fetch(layer) { layer.split("_").map(&:capitalize).join }

  # Other modules of the same name, such as HTTP::WebSocket, Cable::Server and Net::DNS::Server.
  def own_names(text)
    inner = text.scan(/^ +(?:class|module|autoload) :?([A-Z]\w+)/).flatten
    folders = text.scan(/Autoloads\.add\(self, "(.*)"\)/).flatten
    files = folders.flat_map { |folder| Dir.glob("*.rb", base: "#{ROOT}/lib/#{folder}") }
    inner.concat(files.map { |file| camel(file.delete_suffix(".rb")) })
    inner << "WebSocket" if text.match?(/^  module HTTP$/)
    inner - text.scan(/^  (?:class|module) (\w+)/).flatten
  end

  # Without comments, which may tell of users.
  def code_of(text) = text.gsub(%r{/\*.*?\*/}m, "").gsub(/^\s*#(?!include).*$/, "")
end
