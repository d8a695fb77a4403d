# frozen_string_literal: true

require "test_helper"
require "heddle"

# Templates of live pages: what is static, what changes, and what is escaped.
class LiveTemplateTest < Minitest::Test
  def page(text, **state)
    template = Heddle::Live::Template.new(text, "list.erb")
    klass = Class.new(Heddle::Live::Page) { template.define_in(self) }
    made = klass.new(nil, nil)
    state.each { |name, value| made.instance_variable_set(:"@#{name}", value) }
    [template, made]
  end

  def html(text, **)
    template, made = page(text, **)
    template.join(made.render_pieces)
  end

  def test_only_values_are_rendered_and_the_text_between_them_is_static
    template, made = page("<p><%= @a %>, <%= @b %></p>", a: "x", b: 7)

    assert_equal [[0, "x", 7]], made.render_pieces
    assert_equal [["<p>", ", ", "</p>"]], template.statics
  end

  def test_a_loop_repeats_a_piece_and_a_condition_leaves_one_out
    text = <<~ERB
      <ul>
        <% @list.each do |one| %>
          <li><%= one %></li>
          <% next if one == 2 %>
          <hr>
        <% end %>
      </ul>
    ERB
    template, made = page(text, list: [1, 2])

    assert_equal [[0], [1, 1], [2], [1, 2], [3]], made.render_pieces
    assert_equal "<ul>\n    <li>1</li>\n    <hr>\n    <li>2</li>\n</ul>\n", template.join(made.render_pieces)
  end

  def test_html_is_escaped_unless_it_is_raw
    safe = Class.new(String) { def html_safe? = true }.new("<i>")

    assert_equal "&lt;b a=&quot;1&quot;&gt;&amp;&#39; <i> <b>",
                 html("<%= @text %> <%= @safe %> <%= raw('<b>') %>", text: "<b a=\"1\">&'", safe:)
    assert_equal "-1-", html("-<%= @nothing %>1-")
  end

  def test_comments_are_dropped_and_escaped_tags_are_kept_as_text
    assert_equal "<%= 1 %>\nx", html("<%# nothing %>\n<%%= 1 %>\n<%= # why\n'x' %>")
  end

  def test_an_error_names_the_line_of_the_template
    error = assert_raises(ZeroDivisionError) { html("a\n<% if true %>\n<p>\n  <%= 1 / 0 %>\n<% end %>") }

    assert_match(/\Alist\.erb:4:/, error.backtrace.first)
  end

  def test_code_that_is_not_ruby_is_refused_when_the_class_is_made
    error = assert_raises(SyntaxError) { page("<% if true %>") }

    assert_includes error.message, "list.erb"
  end
end
