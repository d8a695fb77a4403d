# frozen_string_literal: true

require "test_helper"

# Includes, requires and constants point down the layers of docs/design.md only.
class LayersTest < Minitest::Test
  ROOT = File.expand_path("..", __dir__)
  # Each layer, and those that it may use beside itself.
  C_LAYERS = {
    "selector" => %w[],
    "scheduler" => %w[selector],
    "watch" => %w[scheduler selector],
    "offload" => %w[scheduler selector],
    "preempt" => %w[watch scheduler selector],
    "processes" => %w[offload scheduler],
    "concurrency" => %w[scheduler],
    "net" => %w[watch scheduler selector],
    "pubsub" => %w[net scheduler selector],
    "http" => %w[pubsub net scheduler selector],
    "rack" => %w[http net scheduler]
  }.freeze
  RUBY_LAYERS = {
    "options" => %w[],
    "selector" => %w[],
    "scheduler" => %w[selector concurrency offload],
    "concurrency" => %w[scheduler],
    "net" => %w[scheduler concurrency],
    "http" => %w[options net scheduler concurrency],
    "rack" => %w[http net scheduler concurrency],
    "server" => %w[options rack http net scheduler concurrency],
    "cli" => %w[options server rack http net scheduler concurrency]
  }.freeze
  # What a constant at the top of Heddle belongs to.
  MODULES = { "Net" => "net", "HTTP" => "http", "Rack" => "rack", "Server" => "server", "CLI" => "cli" }.freeze

  def test_every_folder_of_the_extension_is_a_layer
    folders = Dir.children(File.join(ROOT, "ext/heddle")).select do |name|
      File.directory?("#{ROOT}/ext/heddle/#{name}")
    end

    assert_equal C_LAYERS.keys.sort, folders.sort
  end

  def test_design_md_names_every_folder
    layers = File.read("#{ROOT}/docs/design.md")[/^## Layers\n.*?(?=^## )/m]
    folders = Dir["#{ROOT}/{ext,lib}/heddle/*/"].map { |path| File.basename(path) }.uniq - %w[native]

    assert_operator folders.size, :>, 10
    assert_empty(folders.reject { |name| layers.match?(/^[\w, ]*\b#{name}\b/) })
  end

  def test_includes_point_down
    wrong = C_LAYERS.flat_map do |layer, below|
      sources("ext/heddle/#{layer}/**/*.{c,h}").flat_map do |file, text|
        text.scan(%r{^#include "([a-z_]+)/}).flatten.uniq.filter_map do |other|
          "#{file} includes #{other}/" unless other == layer || below.include?(other)
        end
      end
    end

    assert_empty wrong
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
    code_of(text).scan(/(?<![\w:.])(?:Heddle::)?(#{MODULES.keys.join("|")})::[A-Z]/).flatten.uniq.filter_map do |name|
      other = MODULES.fetch(name)
      "#{file} names #{name}" unless other == layer || below.include?(other)
    end
  end

  # Without comments: those may tell of users.
  def code_of(text) = text.gsub(%r{/\*.*?\*/}m, "").gsub(/^\s*#(?!include).*$/, "")
end
