# frozen_string_literal: true

require "test_helper"
require_relative "../bin/support/layers"

# Includes, requires and constants point down the layers of docs/design.md only.
class LayersTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # Each layer, and those that it may use beside itself. Those of the extension: bin/support/layers.rb.
  RUBY_LAYERS = {
    "options" => %w[],
    "selector" => %w[],
    "scheduler" => %w[selector concurrency offload],
    "concurrency" => %w[scheduler],
    "net" => %w[scheduler concurrency],
    "pubsub" => %w[net scheduler concurrency],
    "http" => %w[options net scheduler concurrency],
    "rack" => %w[http net scheduler concurrency],
    "server" => %w[options rack http pubsub net scheduler concurrency],
    "cli" => %w[options server rack http pubsub net scheduler concurrency]
  }.freeze
  # The folders that are no layers, and the folders whose files may use each.
  BESIDE = {
    "Databases" => %w[rack server cli rails],
    "Adaptations" => %w[server cli databases rails],
    "Rails" => %w[server cli databases],
    "WebSocket" => %w[rack cable live],
    "Protection" => %w[callback_report enable handoff offload preemption stall stalls server cli],
    "Preemption" => [],
    "Async" => %w[adaptations],
    "Cable" => [],
    "Live" => []
  }.freeze
  # Files that put the parts together.
  PARTS = %w[assembly runtime railtie].freeze
  # What a constant at the top of Heddle belongs to.
  MODULES = { "Net" => "net", "PubSub" => "pubsub", "HTTP" => "http", "Rack" => "rack", "Server" => "server",
              "CLI" => "cli" }.freeze

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

  def test_requires_and_autoloads_point_down
    wrong = RUBY_LAYERS.flat_map do |layer, below|
      sources("lib/heddle/#{layer}{.rb,/**/*.rb}").flat_map do |file, text|
        text.scan(%r{^\s*(?:require|autoload :\w+,) "heddle/(\w+)}).flatten.uniq.filter_map do |other|
          "#{file} requires heddle/#{other}" if RUBY_LAYERS.key?(other) && other != layer && !below.include?(other)
        end
      end
    end

    assert_empty wrong
  end

  def test_constants_point_down
    wrong = RUBY_LAYERS.flat_map do |layer, below|
      sources("lib/heddle/#{layer}{.rb,/**/*.rb}").flat_map { |file, text| constants_above(file, text, layer, below) }
    end

    assert_empty wrong
  end

  def test_folders_beside_the_layers_are_used_only_where_the_design_says_so
    wrong = sources("lib/heddle/**/*.rb").flat_map do |file, text|
      folder = file[%r{\Alib/heddle/(\w+)}, 1]
      names_of(text, BESIDE.keys, "(?:::[A-Z]|\\.[a-z])").filter_map do |name|
        own = name.gsub(/(?<=[a-z])(?=[A-Z])/, "_").downcase
        "#{file} names #{name}" unless [own, *BESIDE.fetch(name), *PARTS].include?(folder) || own_name?(folder, name)
      end
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

  def constants_above(file, text, layer, below)
    names_of(text, MODULES.keys, "::[A-Z]").filter_map do |name|
      other = MODULES.fetch(name)
      "#{file} names #{name}" unless other == layer || below.include?(other)
    end
  end

  # The constants at the top of Heddle that a file names; not those of other gems, `::Rails`.
  def names_of(text, names, rest)
    code_of(text).scan(/(?<![\w:.'"@])(?:Heddle::)?(#{names.join("|")})#{rest}/).flatten.uniq
  end

  # HTTP::WebSocket is http's.
  def own_name?(folder, name) = folder == "http" && name == "WebSocket"

  # Without comments: those may tell of users.
  def code_of(text) = text.gsub(%r{/\*.*?\*/}m, "").gsub(/^\s*#(?!include).*$/, "")
end
