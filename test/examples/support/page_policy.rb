# frozen_string_literal: true

# What an example (`@served`) with a page and a script keeps to.
module PagePolicy
  def test_the_page_and_its_script_are_served_under_a_content_security_policy
    page = @served.get("/")

    assert_equal "script-src 'self'", page["content-security-policy"]
    refute_match(/<script(?![^>]*src=)|\son\w+=/, page.body, "the policy forbids scripts within the page")
    script = @served.get(page.body[/<script src="([^"]+)"/, 1])

    assert_equal %w[200 text/javascript], [script.code, script["content-type"]]
  end
end
