"""Pages and pictures of a table's tree: HTML by jinja2 from the folder ``templates``, everything escaped, nothing fetched.

Knows what a ``TreeReport`` says, not how it was found. Public: ``render_page`` (page), ``render_live`` (page), ``PictureOfPlan`` (plan_picture).
"""
